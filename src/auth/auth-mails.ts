import { type Mail, mailTo, type Recipient } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Client } from "./logins/client.ts";

const signedUpAgain =
  "Several sign-ups used this address, and some may not be yours. The page asks you to choose a password.";

const revokesKeys = "If you do not recognise a key, revoke all of them: the link works once, within 72 hours.";

/** Mails about signing up and logging in. */
export interface AuthMails {
  verification(user: Recipient & { readonly pending_contested?: boolean }, token: string): Mail;
  magicLink(user: Recipient, token: string): Mail;
  passwordReset(user: Recipient, token: string): Mail;
  /** `keys`: names and prefixes of the user's keys; `token`: token of the link that revokes them. */
  passwordChanged(user: Recipient, keys: readonly string[], token: string): Mail;
  newDevice(user: Recipient, client: Client): Mail;
  /** Sent to the new address, whose owner is not verified yet. */
  emailChange(user: Recipient, token: string): Mail;
  /** Sent to the owner of an address that another user has requested. */
  emailTaken(user: Recipient): Mail;
  /** Sent to the old address. */
  emailChanged(user: Recipient, newEmail: string, token: string): Mail;
  emailRestored(user: Recipient, token: string): Mail;
}

/** Creates the mails. Names supplied by users appear as plain text. */
export function createAuthMails({ link }: Pick<Mailer, "link">): AuthMails {
  const security = (user: Recipient, mail: Pick<Mail, "subject" | "lines" | "button">) =>
    mailTo(user, { ...mail, kind: "security" });
  const notYou = "If it was not you, ignore this mail: nothing happens without the link.";
  return {
    verification: (user, token) =>
      security(user, {
        subject: "Verify your e-mail address",
        lines: [
          "Somebody signed up to Pilothouse with this address. The link verifies the address, and works for 24 hours.",
          ...(user.pending_contested ? [signedUpAgain] : []),
          notYou,
        ],
        button: { label: "Verify the address", url: link("verify-email", token) },
      }),
    magicLink: (user, token) =>
      security(user, {
        subject: "Your link to log in",
        lines: ["The link logs you in to Pilothouse. It works once, within 15 minutes.", notYou],
        button: { label: "Log in", url: link("magic-link", token) },
      }),
    passwordReset: (user, token) =>
      security(user, {
        subject: "Set a new password",
        lines: ["The link sets a new password and ends all your logins. It works once, within 30 minutes.", notYou],
        button: { label: "Set a new password", url: link("password-reset", token) },
      }),
    passwordChanged: (user, keys, token) =>
      security(user, {
        subject: "Your password was changed",
        lines: [
          "Your password was changed, and your other logins have ended.",
          "If it was not you, request a link to set a new password now.",
          ...(keys.length > 0 ? ["These API keys, which you created, stay valid:", ...keys, revokesKeys] : []),
        ],
        ...(keys.length > 0 && { button: { label: "Revoke the keys", url: link("keys", token) } }),
      }),
    newDevice: (user, { address, family }) =>
      security(user, {
        subject: "A login from a new device",
        lines: [
          `Somebody logged in with ${family} from ${address}, which you have not used before.`,
          "If it was not you, set a new password: that ends all logins.",
        ],
      }),
    emailChange: (user, token) =>
      security(user, {
        subject: "Confirm your new e-mail address",
        lines: [
          "Somebody asked to log in to Pilothouse with this address. The link confirms the address, and works for 24 hours.",
          notYou,
        ],
        button: { label: "Confirm the address", url: link("email-change", token) },
      }),
    emailTaken: (user) =>
      security(user, {
        subject: "Somebody wanted your e-mail address",
        lines: [
          "Another Pilothouse user asked to log in with this address. The address is yours, so nothing has changed.",
          "If that was you: log in with this address, or request a link to set a new password.",
        ],
      }),
    emailChanged: (user, newEmail, token) =>
      security(user, {
        subject: "Your e-mail address was changed",
        lines: [
          `You now log in with the address ${newEmail} instead of this one.`,
          "If it was not you, undo it: the link works for 72 hours. That ends all logins and removes the password.",
        ],
        button: { label: "Undo the change", url: link("undo-email-change", token) },
      }),
    emailRestored: (user, token) =>
      security(user, {
        subject: "Your e-mail address is yours again",
        lines: [
          "The change of your address was undone. All logins have ended, and the old password no longer works.",
          "The link sets a new password. It works once, within 30 minutes; after that, request a new link.",
        ],
        button: { label: "Set a new password", url: link("password-reset", token) },
      }),
  };
}
