import { Secret, TOTP, URI } from "otpauth";

/** Digits that codes have: a seed may come from anywhere, and is not to make longer ones. */
const digits = { least: 6, most: 8 };

/** The code of a TOTP seed at a time (RFC 6238): of one in base 32, or of an `otpauth:` address. Undefined for what is none. */
export function oneTimeCode(seed: string, timestamp: number): string | undefined {
  const totp = readSeed(seed.trim());
  if (!totp || totp.secret.bytes.length === 0 || totp.period < 1) return undefined;
  if (totp.digits < digits.least || totp.digits > digits.most) return undefined;
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
