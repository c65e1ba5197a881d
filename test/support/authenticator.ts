import { TOTP, URI } from "otpauth";
import { expect } from "vitest";
import type { Person } from "./people.ts";

/** Milliseconds for which each code is shown. */
export const codeStep = 30_000;

/** Creates an authenticator app that returns the code at a time in milliseconds. */
export function authenticatorOf(otpauthUrl: string): (time: number) => string {
  const totp = URI.parse(otpauthUrl);
  if (!(totp instanceof TOTP)) throw new Error("expected a TOTP URL");
  return (timestamp) => totp.generate({ timestamp });
}

/** Enrols a second factor over REST, which uses up the code of the current time step. */
export async function enrolFactor({ rest, password }: Person) {
  const begun = await rest("/v1/auth/mfa/totp", { password });
  expect(begun).toMatchObject({ status: 201 });
  const codeAt = authenticatorOf(begun.body.otpauth_url);
  const { status, body } = await rest("/v1/auth/mfa/totp/confirm", { code: codeAt(Date.now()) });
  expect(status).toBe(200);
  const recoveryCodes: readonly string[] = body.recovery_codes;
  return { codeAt, recoveryCodes };
}
