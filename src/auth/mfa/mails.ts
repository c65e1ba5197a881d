import { type Mail, mailTo, type Recipient } from "../../mail/mail.ts";

const changes = {
  enrolled: ["A second factor was added", "An authenticator app was added to your login."],
  removing: [
    "Your second factor will be removed",
    "You have asked us to remove the authenticator app from your login, since it is lost. It is removed in 24 hours.",
    "If it was not you, log in and show a code of the app or a recovery code: nothing is removed then.",
  ],
  removed: ["Your second factor was removed", "The authenticator app was removed from your login."],
  recovered: ["A recovery code was used", "A recovery code was used in place of your authenticator app."],
} as const satisfies Record<string, readonly [subject: string, sentence: string, advice?: string]>;

/** The mail that tells of a change of the second factor. */
export function factorMail(change: keyof typeof changes, user: Recipient): Mail {
  const [subject, sentence, advice = "If it was not you, set another password at once: it ends all logins."] =
    changes[change];
  return mailTo(user, { kind: "security", subject, lines: [sentence, advice] });
}
