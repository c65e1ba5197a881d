import { Secret, TOTP, URI } from "otpauth";

/** Accepted code lengths. Limited because seeds are untrusted. */
const digits = { min: 6, max: 8 };

/**
 * Returns the TOTP code (RFC 6238) of a base 32 seed or `otpauth:` URI, or undefined if invalid. `timestamp` is in Unix
 * milliseconds.
 */
export function oneTimeCode(seed: string, timestamp: number): string | undefined {
  const totp = readSeed(seed.trim());
  if (!totp || totp.secret.bytes.length === 0 || totp.period < 1) return undefined;
  if (totp.digits < digits.min || totp.digits > digits.max) return undefined;
  return totp.generate({ timestamp });
}

function readSeed(seed: string): TOTP | undefined {
  try {
    const read = /^otpauth:/i.test(seed)
      ? URI.parse(seed)
      : new TOTP({ secret: Secret.fromBase32(seed.replace(/[\s-]/g, "")) });
    return read instanceof TOTP ? read : undefined;
  } catch {
    return undefined;
  }
}
