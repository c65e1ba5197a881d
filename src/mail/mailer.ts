import { createTransport } from "nodemailer";
import type { Config } from "../platform/config.ts";
import type { Ids } from "../platform/ids.ts";
import type { Log } from "../platform/log.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { Sealer } from "../platform/secrets/secrets-sealer.ts";
import { checkedMail, type Mail } from "./mail.ts";
import { insertMail, markSent } from "./store.ts";

/** The pages that links in mails lead to. */
export type LinkPage =
  | "verify-email"
  | "magic-link"
  | "password-reset"
  | "invite"
  | "email-change"
  | "undo-email-change";

/** Sends mails. */
export interface Mailer {
  /** Writes a mail in the transaction of its cause; it is sent after the commit, and never after a rollback. */
  send(tx: Tx, mail: Mail): Promise<void>;
  /** Address of a page of ours that does what the token is for, at the press of a button. The token stays in the browser. */
  link(page: LinkPage, token: string): string;
}

export interface MailerParts {
  readonly config: Config;
  readonly db: Database;
  readonly ids: Ids;
  readonly log: Log;
  readonly sealer: Sealer;
}

/** Makes the mailer. */
export function createMailer({ config, db, ids, log, sealer }: MailerParts): Mailer {
  const { smtpUrl, mailFrom, publicUrl } = config;
  const transport = smtpUrl === undefined ? undefined : createTransport(smtpUrl);

  async function deliver(id: string, { to, subject, lines, button }: Mail): Promise<void> {
    if (!transport) return;
    const text = [...lines, ...(button ? [`${button.label}:\n${button.url}`] : [])].join("\n\n");
    await transport.sendMail({ from: mailFrom, to, subject, text });
    await markSent(db, id);
  }

  return {
    async send(tx, mail) {
      const id = ids.next("eml");
      const checked = checkedMail(mail);
      const content = sealer.seal(Buffer.from(JSON.stringify(checked)), { accountId: id, purpose: "mail" });
      insertMail(tx, { id, userId: mail.userId, kind: mail.kind, content });
      tx.afterCommit(() => {
        deliver(id, checked).catch((error: unknown) => log.warn({ err: error, mail_id: id }, "a mail cannot be sent"));
      });
    },
    link: (page, token) => `${publicUrl}/auth/${page}#${token}`,
  };
}
