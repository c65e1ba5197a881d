import type { Work } from "../jobs/work.ts";
import { defineWork, type WorkKind } from "../kernel/work-kind.ts";
import type { Clock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { fail } from "../platform/errors.ts";
import type { Ids } from "../platform/ids.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import type { Sealer } from "../platform/secrets/secrets-sealer.ts";
import { checkedMail, type Mail } from "./mail.ts";
import { createOutbox, type Outbox } from "./outbox.ts";
import { createPost, postWidth } from "./post.ts";
import { isOptional, readPreferences } from "./preferences.ts";
import { deleteMail, deleteOldMails, findMail, insertMail, type StoredMail } from "./store.ts";

/** The pages that links in mails lead to. */
export type LinkPage =
  | "verify-email"
  | "magic-link"
  | "password-reset"
  | "invite"
  | "email-change"
  | "undo-email-change"
  | "account-restore"
  | "keys"
  | "status/confirm"
  | "status/unsubscribe";

/** Path of a page that links in mails lead to. */
export const linkPath = (page: LinkPage): string => (page.startsWith("status/") ? `/${page}` : `/auth/${page}`);

/** Sends mails. */
export interface Mailer extends Part {
  /**
   * Writes a mail in the transaction of its cause; it is sent after the commit, and never after a rollback. Of a kind that
   * its user does not want none is written. Better last in the transaction: until the commit no other mail is written.
   */
  send(tx: Tx, mail: Mail): Promise<void>;
  /** Address of a page of ours that does what the token is for, at the press of a button. The token stays in the browser. */
  link(page: LinkPage, token: string): string;
  /** Where mails stay that nobody sends. */
  readonly outbox: Outbox | undefined;
  /** What sends them. */
  readonly works: readonly WorkKind<MailJob>[];
  readonly jobs: readonly RepeatedWork[];
}

interface MailJob {
  readonly mailId: string;
}

export interface MailerParts {
  readonly config: Config;
  readonly db: Database;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly sealer: Sealer;
  readonly work: Work;
  readonly linkSecret: string;
}

const second = 1_000;
const minute = 60 * second;

/** A server that is away for a while, or puts a stranger off (greylisting), gets the mail before its links expire, if it can. */
const schedule = [
  5 * second,
  30 * second,
  2 * minute,
  5 * minute,
  15 * minute,
  60 * minute,
  240 * minute,
  720 * minute,
];

/** Milliseconds that a mail is kept which could not be sent, or which an outbox has. */
const keptFor = 30 * 1_440 * minute;

/** Makes the mailer. */
export function createMailer({ config, db, clock, ids, sealer, work, linkSecret }: MailerParts): Mailer {
  const { smtpUrl, mailFrom, publicUrl } = config;
  const post = smtpUrl === undefined ? undefined : createPost({ smtpUrl, mailFrom, publicUrl });
  const contextOf = (id: string) => ({ accountId: id, purpose: "mail" });

  function open({ id, content }: StoredMail): Mail {
    // The boundary at which a mail is read again that `send` below has written.
    return JSON.parse(sealer.open(content, contextOf(id)).toString()) as Mail;
  }

  const outbox = post || !config.embedded ? undefined : createOutbox(db, publicUrl, linkSecret, open);
  const sending = defineWork<MailJob>({
    kind: "mail",
    width: postWidth,
    schedule,
    timeout: minute,
    async run({ data: { mailId } }) {
      const stored = await findMail(db, mailId);
      // It was sent by an attempt whose gateway died before it could say so.
      if (!stored) return;
      await post?.send(mailId, open(stored));
      await deleteMail(db, mailId);
    },
  });

  /** What its user can do without is not missed, either, where no mails are sent at all. */
  async function isWanted(tx: Tx, { kind, userId }: Mail): Promise<boolean> {
    if (!isOptional(kind)) return true;
    if (!post && !outbox) return false;
    return userId === undefined || (await readPreferences(tx, userId))[kind];
  }

  return {
    async send(tx, mail) {
      if (!(await isWanted(tx, mail))) return;
      if (!post && !outbox) throw fail("feature-unavailable", {}, { detail: "this deployment sends no mails" });
      const id = ids.next("eml");
      const content = sealer.seal(Buffer.from(JSON.stringify(checkedMail(mail))), contextOf(id));
      insertMail(tx, { id, userId: mail.userId, kind: mail.kind, content });
      // One lane for the one server that sends them on.
      if (post) work.enqueue(tx, sending, { lane: "smtp", data: { mailId: id } });
    },
    link: (page, token) => `${publicUrl}${linkPath(page)}#${token}`,
    outbox,
    works: post ? [sending] : [],
    jobs: [
      {
        run: () => deleteOldMails(db, new Date(clock.now() - keptFor)),
        every: 60 * minute,
        complaint: "old mails cannot be deleted at the moment",
      },
    ],
    stop: () => post?.close(),
  };
}
