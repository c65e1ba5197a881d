import { TOTP, URI } from "otpauth";

/** Makes the app of a person who has enrolled it: gives its code at a time, in milliseconds. */
export function authenticatorOf(otpauthUrl: string): (time: number) => string {
  const totp = URI.parse(otpauthUrl);
  if (!(totp instanceof TOTP)) throw new Error("the address is of no TOTP");
  return (timestamp) => totp.generate({ timestamp });
}
