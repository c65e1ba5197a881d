import { type Mail, mailTo, type Recipient } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Client } from "./logins/client.ts";

const signedUpAgain =
  "This address was used to sign up more than once, perhaps not by you each time. The page asks you to choose a password.";

const revokesKeys = "If you do not recognise a key, revoke all of them with the link. It works once, within 72 hours.";

/** E-mails about signing up and logging in. */
export interface AuthMails {
  verification(user: Recipient & { readonly pending_contested?: boolean }, token: string): Mail;
  magicLink(user: Recipient, token: string): Mail;
  passwordReset(user: Recipient, token: string): Mail;
  /** `keys`: names and prefixes of the user's keys; `token`: token of the link that revokes these keys. */
  passwordChanged(user: Recipient, keys: readonly string[], token: string): Mail;
  newDevice(user: Recipient, client: Client): Mail;
  /** Sent to the new address, before its owner is verified. */
  emailChange(user: Recipient, token: string): Mail;
  /** Sent to the owner of an address that another user has requested. */
  emailTaken(user: Recipient): Mail;
  /** Sent to the old address. */
  emailChanged(user: Recipient, newEmail: string, token: string): Mail;
  emailRestored(user: Recipient, token: string): Mail;
}

/** Creates the e-mails. Names supplied by users appear as plain text. */
export function createAuthMails({ link }: Pick<Mailer, "link">): AuthMails {
  const security = (user: Recipient, mail: Pick<Mail, "subject" | "lines" | "button">) =>
    mailTo(user, { ...mail, kind: "security" });
  const notYou = "If it was not you, ignore this e-mail. Nothing changes unless the link is used.";
  return {
    verification: (user, token) =>
      security(user, {
        subject: "Verify your e-mail address",
        lines: [
          "Someone signed up for Pilothouse with this address. Verify the address with the link within 24 hours.",
          ...(user.pending_contested ? [signedUpAgain] : []),
          notYou,
        ],
        button: { label: "Verify the address", url: link("verify-email", token) },
      }),
    magicLink: (user, token) =>
      security(user, {
        subject: "Your login link",
        lines: ["Log in to Pilothouse with the link. It works once, within 15 minutes.", notYou],
        button: { label: "Log in", url: link("magic-link", token) },
      }),
    passwordReset: (user, token) =>
      security(user, {
        subject: "Set a new password",
        lines: [
          "Set a new password with the link. It works once, within 30 minutes. A new password ends all your logins.",
          notYou,
        ],
        button: { label: "Set a new password", url: link("password-reset", token) },
      }),
    passwordChanged: (user, keys, token) =>
      security(user, {
        subject: "Your password was changed",
        lines: [
          "Your password was changed, and your other logins have ended.",
          "If it was not you, set a new password now: choose 'Forgot the password?' where you log in.",
          ...(keys.length > 0 ? ["These API keys, which you created, stay valid:", ...keys, revokesKeys] : []),
        ],
        ...(keys.length > 0 && { button: { label: "Revoke the keys", url: link("keys", token) } }),
      }),
    newDevice: (user, { address, family }) =>
      security(user, {
        subject: "A login from a new device",
        lines: [
          `Someone logged in as you with ${family} from ${address}, for the first time.`,
          "If it was not you, set a new password now: that ends all logins.",
        ],
      }),
    emailChange: (user, token) =>
      security(user, {
        subject: "Confirm your new e-mail address",
        lines: [
          "A Pilothouse user wants to log in with this address. Confirm the address with the link within 24 hours.",
          notYou,
        ],
        button: { label: "Confirm the address", url: link("email-change", token) },
      }),
    emailTaken: (user) =>
      security(user, {
        subject: "Someone tried to use your e-mail address",
        lines: [
          "Another Pilothouse user wanted to log in with this address. The address is yours, so nothing has changed.",
          "If it was you, log in with this address. If you forgot the password, set a new one.",
        ],
      }),
    emailChanged: (user, newEmail, token) =>
      security(user, {
        subject: "Your e-mail address was changed",
        lines: [
          `You now log in with the address ${newEmail} instead of this one.`,
          "If it was not you, undo the change with the link within 72 hours. That ends all logins and removes the password.",
        ],
        button: { label: "Undo the change", url: link("undo-email-change", token) },
      }),
    emailRestored: (user, token) =>
      security(user, {
        subject: "Your e-mail address is yours again",
        lines: [
          "The change of your address was undone. All logins have ended, and the old password no longer works.",
          "Set a new password with the link. It works once, within 30 minutes. After that, request a new link.",
        ],
        button: { label: "Set a new password", url: link("password-reset", token) },
      }),
  };
}
