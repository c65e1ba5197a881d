import type { OptionalMailKind } from "./preferences.ts";

/** Content of an e-mail; the mailer adds the layout. */
export interface Mail {
  readonly to: string;
  readonly subject: string;
  /** Paragraphs of plain text, escaped so that user-supplied names never become links. */
  readonly lines: readonly string[];
  /** The only link of the e-mail besides `unsubscribe`. */
  readonly button?: { readonly label: string; readonly url: string };
  /** Category. Users can opt out of optional kinds only. */
  readonly kind: "security" | "account" | "status" | OptionalMailKind;
  /** One-click unsubscribe: a landing page, and the URL that mail programs post to (RFC 8058). */
  readonly unsubscribe?: { readonly page: string; readonly oneClick: string };
  /** The user whose preferences apply; if undefined, the e-mail is always sent. */
  readonly userId?: string;
}

export interface Recipient {
  readonly id: string;
  readonly email: string;
  readonly name: string;
}

/** Creates an e-mail to a user, which starts with a greeting. */
export function mailTo({ id, email, name }: Recipient, mail: Omit<Mail, "to" | "userId">): Mail {
  return { ...mail, to: email, userId: id, lines: [`Hello ${name},`, ...mail.lines] };
}

/** Maximum characters and lines. Longer text is cut, because it may contain user-supplied names. */
const bounds = { subject: 150, lines: 40, line: 2_000 };

/** Matches characters that mail programs turn into links, as in `a.example`, `a@b`, `http://`. */
const linkMarks = /(?<=\S)[.:/@](?=\S)/;

/** Matches amounts and times of day, which never become links, so that they can be copied unchanged. */
const plainNumber = /(?<![^\s(])\d{1,20}[.:]\d{1,20}(?=[.,;)]?(?:\s|$))/;
const markOrNumber = new RegExp(`${plainNumber.source}|${linkMarks.source}`, "g");

/** Inserts a zero-width space after characters that would turn text into a link. */
export function unlinked(text: string): string {
  return text.replaceAll(markOrNumber, (found) => (found.length > 1 ? found : `${found}\u200B`));
}

/**
 * Replaces control characters, which could start another header line. Truncates the text, and prevents mail programs
 * from turning parts of the text into links.
 */
function cleaned(text: string, length: number): string {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return unlinked(line.length <= length ? line : `${line.slice(0, length - 1).trimEnd()}…`);
}

/**
 * Bounds the size of an e-mail, and makes each paragraph one line without links. Throws if the recipient is invalid.
 */
export function checkedMail(mail: Mail): Mail {
  if (!/^[^\s@<>,;]{1,64}@[^\s@<>,;]{1,255}$/.test(mail.to)) throw new Error("expected exactly one recipient address");
  return {
    ...mail,
    subject: cleaned(mail.subject, bounds.subject),
    lines: mail.lines.slice(0, bounds.lines).map((line) => cleaned(line, bounds.line)),
  };
}
