import { type Mail, mailTo, type Recipient } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Client } from "./logins/client.ts";

const signedUpAgain =
  "It was signed up with more than once, maybe not by you alone: the page asks you for the password to have.";

const revokesKeys = "If you do not know one of them, revoke them all: the link works once, within 72 hours.";

/** The mails about signing up and logging in. */
export interface AuthMails {
  verification(user: Recipient & { readonly pending_contested?: boolean }, token: string): Mail;
  magicLink(user: Recipient, token: string): Mail;
  passwordReset(user: Recipient, token: string): Mail;
  /** `keys`: what the user's keys are called, and with what they begin; the token is that of the link that revokes them. */
  passwordChanged(user: Recipient, keys: readonly string[], token: string): Mail;
  newDevice(user: Recipient, client: Client): Mail;
  /** To the new address, of which nobody knows yet whose it is. */
  emailChange(user: Recipient, token: string): Mail;
  /** To the user who has the address that another one wants. */
  emailTaken(user: Recipient): Mail;
  /** To the old address. */
  emailChanged(user: Recipient, newEmail: string, token: string): Mail;
  emailRestored(user: Recipient, token: string): Mail;
}

/** Makes the mails; what people have named themselves stands in them as plain text. */
export function createAuthMails({ link }: Pick<Mailer, "link">): AuthMails {
  const security = (user: Recipient, mail: Pick<Mail, "subject" | "lines" | "button">) =>
    mailTo(user, { ...mail, kind: "security" });
  const notYou = "If it was not you, ignore this mail: nothing happens without the link.";
  return {
    verification: (user, token) =>
      security(user, {
        subject: "Verify your e-mail address",
        lines: [
          "Somebody has signed up to Pilothouse with this address. The link verifies the address, and works for 24 hours.",
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
        subject: "Set another password",
        lines: ["The link sets another password and ends all your logins. It works once, within 30 minutes.", notYou],
        button: { label: "Set another password", url: link("password-reset", token) },
      }),
    passwordChanged: (user, keys, token) =>
      security(user, {
        subject: "Your password was changed",
        lines: [
          "Your password was changed, and your other logins have ended.",
          "If it was not you, ask for a link to set another password at once.",
          ...(keys.length > 0 ? ["These API keys, which you have made, go on:", ...keys, revokesKeys] : []),
        ],
        ...(keys.length > 0 && { button: { label: "Revoke the keys", url: link("keys", token) } }),
      }),
    newDevice: (user, { address, family }) =>
      security(user, {
        subject: "A login from a new device",
        lines: [
          `Somebody has logged in with ${family} from ${address}, from where you have not logged in before.`,
          "If it was not you, set another password: it ends all logins.",
        ],
      }),
    emailChange: (user, token) =>
      security(user, {
        subject: "Confirm your new e-mail address",
        lines: [
          "Somebody wants to log in to Pilothouse with this address from now on. The link confirms the address, and works for 24 hours.",
          notYou,
        ],
        button: { label: "Confirm the address", url: link("email-change", token) },
      }),
    emailTaken: (user) =>
      security(user, {
        subject: "Somebody wanted your e-mail address",
        lines: [
          "Another user of Pilothouse has asked to log in with this address from now on. It is yours, so nothing has changed.",
          "If that was you: log in with this address, or ask for a link to set another password.",
        ],
      }),
    emailChanged: (user, newEmail, token) =>
      security(user, {
        subject: "Your e-mail address was changed",
        lines: [
          `Your login has the address ${newEmail} from now on, in place of this one.`,
          "If it was not you, undo it: the link works for 72 hours. It ends all logins, and drops the password.",
        ],
        button: { label: "Undo the change", url: link("undo-email-change", token) },
      }),
    emailRestored: (user, token) =>
      security(user, {
        subject: "Your e-mail address is yours again",
        lines: [
          "The change of your address was undone. All logins have ended, and the old password does not work any more.",
          "The link sets another password. It works once, within 30 minutes; later, ask for a new link.",
        ],
        button: { label: "Set another password", url: link("password-reset", token) },
      }),
  };
}
