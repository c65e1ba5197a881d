import { createHmac, randomBytes } from "node:crypto";
import { HOTP, Secret, TOTP } from "otpauth";
import { randomText } from "../../platform/ids.ts";

/** Seconds of a time step: the default of RFC 6238, which all authenticator apps support. */
const periodSeconds = 30;
/** Digits of a code, which all authenticator apps support. */
const digits = 6;

/** Bytes of a seed: the length of a SHA-1 hash, as RFC 4226 recommends. */
const seedBytes = 20;

const recoveryCodeCount = 10;

export function newSeed(): Buffer {
  return randomBytes(seedBytes);
}

function secretOf(seed: Buffer): Secret {
  return new Secret({ buffer: new Uint8Array(seed).buffer });
}

/** Formats a seed for apps: as text to type, and as a URL for a QR code. */
export function describeSeed(seed: Buffer, email: string): { readonly secret: string; readonly url: string } {
  const totp = new TOTP({ issuer: "Pilothouse", label: email, secret: secretOf(seed), period: periodSeconds, digits });
  return { secret: totp.secret.base32, url: totp.toString() };
}

/**
 * Returns the time step of a code, which may differ by one step from the current time because of clock skew; undefined
 * if the code is wrong.
 */
export function counterOfCode(seed: Buffer, code: string, now: number): number | undefined {
  const counter = Math.floor(now / 1_000 / periodSeconds);
  const delta = HOTP.validate({ token: code, secret: secretOf(seed), digits, counter, window: 1 });
  return delta === null ? undefined : counter + delta;
}

/** Creates recovery codes of 50 random bits each. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodeCount }, () => `${randomText(5)}-${randomText(5)}`);
}

export function hashRecoveryCode(seed: Buffer, code: string): Buffer {
  return createHmac("sha256", seed).update(code).digest();
}
