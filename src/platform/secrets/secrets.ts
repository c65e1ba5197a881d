import { hash as hashOnce, timingSafeEqual } from "node:crypto";

/** Hashes a secret that carries 160 bits or more itself, so that no slow hash is needed (1 us against 7 ms of argon2). */
export function hashSecret(secret: string): Buffer {
  // By way of text: Node takes twice as long to make the buffer itself.
  return Buffer.from(hashOnce("sha256", secret, "hex"), "hex");
}

/** Compares two hashes in a time that does not depend on where they differ. */
function sameHash(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Says whether a secret is the one that was hashed, in constant time. */
export function matchesHash(secret: string, hash: Uint8Array): boolean {
  return sameHash(hashSecret(secret), hash);
}
