import type { OptionalMailKind } from "./preferences.ts";

/** What a mail says; the mailer gives it its looks. */
export interface Mail {
  /** Address of the one who gets it. */
  readonly to: string;
  readonly subject: string;
  /** Paragraphs of plain text. Nothing in them becomes a link, whoever has named himself what. */
  readonly lines: readonly string[];
  /** The one link. */
  readonly button?: { readonly label: string; readonly url: string };
  /** What it is about. Mails on security, and those on the account that somebody has caused, are always sent. */
  readonly kind: "security" | "account" | "status" | OptionalMailKind;
  /** How who gets it can have no more of its kind: a page of ours, and the address that mail programs post to (RFC 8058). */
  readonly unsubscribe?: { readonly page: string; readonly oneClick: string };
  /** The user whose preferences it obeys; without one it is always sent. */
  readonly userId?: string;
}

/** A user as mails name it. */
export interface Recipient {
  readonly id: string;
  readonly email: string;
  readonly name: string;
}

/** A mail to a user, which begins with its name. */
export function mailTo({ id, email, name }: Recipient, mail: Omit<Mail, "to" | "userId">): Mail {
  return { ...mail, to: email, userId: id, lines: [`Hello ${name},`, ...mail.lines] };
}

/** Characters. What is longer is cut: names of users are in it. */
const bounds = { subject: 150, lines: 40, line: 2_000 };

/** What mail programs make a link of: a character of an address between two others, as in `a.example`, `a@b`, `http://`. */
const linkMarks = /(?<=\S)[.:/@](?=\S)/;

/** Amounts and times of day, which nobody makes a link of: who copies one is to have what is shown. */
const plainNumber = /(?<![^\s(])\d{1,20}[.:]\d{1,20}(?=[.,;)]?(?:\s|$))/;
const markOrNumber = new RegExp(`${plainNumber.source}|${linkMarks.source}`, "g");

/** Puts a space without width behind whatever would make a link of a text. */
export function unlinked(text: string): string {
  return text.replaceAll(markOrNumber, (found) => (found.length > 1 ? found : `${found}\u200B`));
}

/** One line of text without control characters, which in a header would begin another one. */
function cleaned(text: string, length: number): string {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return unlinked(line.length <= length ? line : `${line.slice(0, length - 1).trimEnd()}…`);
}

/** A mail as it may be sent: of bounded size, in lines that are lines, without links but the button's. */
export function checkedMail(mail: Mail): Mail {
  if (!/^[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}$/.test(mail.to)) throw new Error("a mail needs one address to go to");
  return {
    ...mail,
    subject: cleaned(mail.subject, bounds.subject),
    lines: mail.lines.slice(0, bounds.lines).map((line) => cleaned(line, bounds.line)),
  };
}
