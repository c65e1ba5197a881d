import { createHmac, randomBytes } from "node:crypto";
import { HOTP, Secret, TOTP } from "otpauth";
import { randomText } from "../../platform/ids.ts";

/** Seconds of a time step, and digits of a code: what every app assumes (RFC 6238). */
const period = 30;
const digits = 6;

/** Bytes of a seed: those of a hash by SHA-1, as RFC 4226 asks. */
const seedBytes = 20;

const recoveryCodeCount = 10;

/** Makes the seed of a second factor. */
export function newSeed(): Buffer {
  return randomBytes(seedBytes);
}

function secretOf(seed: Buffer): Secret {
  return new Secret({ buffer: new Uint8Array(seed).buffer });
}

/** Writes a seed as apps read it: to be typed, and as an address for a QR code. */
export function describeSeed(seed: Buffer, email: string): { readonly secret: string; readonly url: string } {
  const totp = new TOTP({ issuer: "Pilothouse", label: email, secret: secretOf(seed), period, digits });
  return { secret: totp.secret.base32, url: totp.toString() };
}

/** The time step whose code this is: the present one, or that before or after it, since clocks differ. */
export function counterOfCode(seed: Buffer, code: string, now: number): number | undefined {
  const counter = Math.floor(now / 1_000 / period);
  const delta = HOTP.validate({ token: code, secret: secretOf(seed), digits, counter, window: 1 });
  return delta === null ? undefined : counter + delta;
}

/** Makes recovery codes: 50 random bits each. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodeCount }, () => `${randomText(5)}-${randomText(5)}`);
}

/** Hashes a recovery code under the seed. */
export function hashRecoveryCode(seed: Buffer, code: string): Buffer {
  return createHmac("sha256", seed).update(code).digest();
}
