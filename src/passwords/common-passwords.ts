import { dictionary } from "@zxcvbn-ts/language-common";
import { failFields } from "../platform/errors.ts";

/** The shortest password that the contract takes. */
const shortest = 10;

/** The common passwords that are long enough to be chosen here: 1,557 of the 49,233 of the list. */
const common: ReadonlySet<string> = new Set(
  dictionary["passwords-common"].filter((password) => password.length >= shortest),
);

/** Throws `validation-failed` for a password that is tried first by everybody who guesses, or that is the address. */
export function assertUncommon(password: string, email: string): void {
  const lower = password.toLowerCase();
  if (common.has(lower)) throw failFields("validation-failed", { password: "is one of the most common passwords" });
  if (lower === email) throw failFields("validation-failed", { password: "is the e-mail address" });
}
