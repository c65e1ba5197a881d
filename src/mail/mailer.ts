import type { JobQueues } from "../jobs/job-queues.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import { fail } from "../platform/errors.ts";
import type { Part } from "../platform/lifetime.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { RepeatedTask } from "../platform/repeated-job.ts";
import { checkedMail, type Mail } from "./mail.ts";
import { createOutbox, type MailOutbox } from "./mail-outbox.ts";
import { isOptional, readPreferences } from "./preferences.ts";
import { createSmtpClient, smtpWidth } from "./smtp-client.ts";
import { deleteMail, deleteOldMails, findMail, insertMail, type StoredMail } from "./store.ts";

/** Pages that links in e-mails open. */
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

/** Path of a page that links in e-mails open. */
export const linkPath = (page: LinkPage): string => (page.startsWith("status/") ? `/${page}` : `/auth/${page}`);

export interface Mailer extends Part {
  /**
   * Stores an e-mail in the given transaction; the e-mail is sent after the commit. An e-mail that the user has opted
   * out of is not stored. Throws `feature-unavailable` if the deployment cannot send e-mail and the e-mail is not
   * optional. Call `send` late in the transaction, because other e-mails wait for the commit.
   */
  send(tx: Tx, mail: Mail): Promise<void>;
  /**
   * Returns the URL of a page that uses the token when a button is pressed. The token is in the fragment, which
   * browsers do not send to servers.
   */
  link(page: LinkPage, token: string): string;
  /** Set only in embedded mode without SMTP_URL. */
  readonly outbox: MailOutbox | undefined;
  readonly jobKinds: readonly JobKind<MailJob>[];
  readonly jobs: readonly RepeatedTask[];
}

interface MailJob {
  readonly mailId: string;
}

export interface MailerParts extends Pick<PlatformParts, "config" | "db" | "clock" | "ids" | "sealer"> {
  readonly jobQueues: JobQueues;
  readonly linkSecret: string;
}

const second = 1_000;
const minute = 60 * second;

/**
 * Milliseconds before each retry, because servers may be down or use greylisting. Short at first, so that links arrive
 * before they expire.
 */
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

/** Milliseconds for which unsent e-mails and e-mails in an outbox are kept. */
const keptFor = 30 * 1_440 * minute;

export function createMailer({ config, db, clock, ids, sealer, jobQueues, linkSecret }: MailerParts): Mailer {
  const { smtpUrl, mailFrom, publicUrl } = config;
  const smtp = smtpUrl === undefined ? undefined : createSmtpClient({ smtpUrl, mailFrom, publicUrl });
  const contextOf = (id: string) => ({ accountId: id, purpose: "mail" });

  function open({ id, content }: StoredMail): Mail {
    // Cast: only `send` below writes this JSON.
    return JSON.parse(sealer.open(content, contextOf(id)).toString()) as Mail;
  }

  const outbox = smtp || !config.embedded ? undefined : createOutbox(db, publicUrl, linkSecret, open);
  const sending = defineJob<MailJob>({
    kind: "mail",
    width: smtpWidth,
    schedule,
    timeout: minute,
    async run({ data: { mailId } }) {
      const stored = await findMail(db, mailId);
      // An earlier run sent the e-mail and deleted the row, but did not complete the job; or a sweep deleted the row.
      if (!stored) return;
      await smtp?.send(mailId, open(stored));
      await deleteMail(db, mailId);
    },
  });

  /**
   * Returns whether to store an e-mail. Optional e-mails are skipped if the user opted out or the deployment cannot
   * send e-mail.
   */
  async function isWanted(tx: Tx, { kind, userId }: Mail): Promise<boolean> {
    if (!isOptional(kind)) return true;
    if (!smtp && !outbox) return false;
    return userId === undefined || (await readPreferences(tx, userId))[kind];
  }

  return {
    async send(tx, mail) {
      if (!(await isWanted(tx, mail))) return;
      if (!smtp && !outbox)
        throw fail(
          "feature-unavailable",
          {},
          { detail: "this deployment cannot send e-mail: its operator must set SMTP_URL" },
        );
      const id = ids.next("eml");
      const content = sealer.seal(Buffer.from(JSON.stringify(checkedMail(mail))), contextOf(id));
      insertMail(tx, { id, userId: mail.userId, kind: mail.kind, content });
      // All e-mails share one queue, because there is one SMTP server.
      if (smtp) jobQueues.enqueue(tx, sending, { queue: "smtp", data: { mailId: id } });
    },
    link: (page, token) => `${publicUrl}${linkPath(page)}#${token}`,
    outbox,
    jobKinds: smtp ? [sending] : [],
    jobs: [
      {
        run: () => deleteOldMails(db, new Date(clock.now() - keptFor)),
        every: 60 * minute,
        failureMessage: "failed to delete old e-mails",
      },
    ],
    stop: () => smtp?.close(),
  };
}
