import type { UserRow } from "../accounts/users.ts";
import type { Mail } from "../mail/mail.ts";

const changes = {
  enrolled: ["A second factor was added", "an authenticator app was added to your login."],
  removed: ["Your second factor was removed", "the authenticator app was removed from your login."],
  recovered: ["A recovery code was used", "a recovery code was used in place of your authenticator app."],
} as const;

/** The mail that tells of a change of the second factor. */
export function factorMail(
  change: keyof typeof changes,
  { id, email, name }: Pick<UserRow, "id" | "email" | "name">,
): Mail {
  const [subject, sentence] = changes[change];
  const advice = "If it was not you, set another password at once: it ends all logins.";
  return { to: email, userId: id, kind: "security", subject, lines: [`Hello ${name},`, sentence, advice] };
}
