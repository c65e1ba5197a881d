import { type Mail, mailTo, type Recipient } from "../../mail/mail.ts";

const changes = {
  enrolled: ["An authenticator app was added", "An authenticator app was added to your login."],
  removing: [
    "Your authenticator app will be removed",
    "Someone asked to remove the lost authenticator app from your login. It will be removed in 24 hours.",
    "If it was not you, log in with a code of the app or a recovery code: that cancels the removal.",
  ],
  removed: ["Your authenticator app was removed", "The authenticator app was removed from your login."],
  recovered: ["A recovery code was used", "A recovery code was used in place of your authenticator app."],
} as const satisfies Record<string, readonly [subject: string, sentence: string, advice?: string]>;

/** Creates the e-mail about a change of the second factor. */
export function factorMail(change: keyof typeof changes, user: Recipient): Mail {
  const [subject, sentence, advice = "If it was not you, set a new password now: that ends all logins."] =
    changes[change];
  return mailTo(user, { kind: "security", subject, lines: [sentence, advice] });
}
