import type { Database } from "../platform/postgres/database.ts";
import type { Mail } from "./mail.ts";
import { htmlOf, textOf } from "./mail-text.ts";
import { findMail, readLatestMails, type StoredMail } from "./store.ts";

/** Maximum number of e-mails that an outbox shows. */
const shown = 100;

/** An e-mail as an outbox shows it. */
export interface OutboxMail extends Mail {
  readonly id: string;
  readonly writtenAt: Date;
  readonly text: string;
  readonly html: string;
}

/** E-mails that are shown instead of sent, in embedded mode without SMTP_URL. */
export interface MailOutbox {
  /** Key that grants read access, because links in e-mails are credentials. */
  readonly key: string;
  /** Lists the latest e-mails, newest first. */
  list(): Promise<OutboxMail[]>;
  find(id: string): Promise<OutboxMail | undefined>;
}

export function createOutbox(
  db: Database,
  publicUrl: string,
  key: string,
  open: (stored: StoredMail) => Mail,
): MailOutbox {
  const show = (stored: StoredMail): OutboxMail => {
    const mail = open(stored);
    const { id, created_at: writtenAt } = stored;
    return { ...mail, id, writtenAt, text: textOf(mail, publicUrl), html: htmlOf(mail, publicUrl) };
  };
  return {
    key,
    list: async () => (await readLatestMails(db, shown)).map(show),
    async find(id) {
      const stored = await findMail(db, id);
      return stored && show(stored);
    },
  };
}
