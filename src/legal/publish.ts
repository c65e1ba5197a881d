import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import {
  insertRevision,
  listOwners,
  lockUnannounced,
  markAnnounced,
  type RevisionRow,
  revisionsAreUnannounced,
} from "./store.ts";

/** Minimum milliseconds between the e-mail to owners and the effective date of a revision. */
const noticeMs = 14 * 86_400_000;

export interface NewRevision {
  readonly id: string;
  readonly url: string;
  readonly publishedAt: Date;
  readonly effectiveAt: Date;
}

/**
 * Publishes a revision, which `termsMailTask` announces. Returns false if another revision has the same id or effective
 * date. Throws a RangeError if the effective date is less than 14 days after publication.
 */
export async function publishRevision(tx: Tx, { id, url, publishedAt, effectiveAt }: NewRevision): Promise<boolean> {
  if (effectiveAt.getTime() - publishedAt.getTime() < noticeMs)
    throw new RangeError("the effective date must be at least 14 days after publication");
  return await insertRevision(tx, { id, url, published_at: publishedAt, effective_at: effectiveAt, told_at: null });
}

export interface TermsMailParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly mailer: Mailer;
}

/**
 * Creates the task that e-mails all owners once about each new revision. Postpones the effective date if fewer than 14
 * days are left when the e-mails are sent.
 */
export function termsMailTask({ db, clock, mailer }: TermsMailParts): DueTask {
  async function notifyOwners(tx: Tx, { url, effective_at: effectiveAt }: RevisionRow): Promise<void> {
    const day = effectiveAt.toISOString().slice(0, 10);
    const mail = {
      kind: "security",
      subject: "Our terms are changing",
      lines: [`New terms take effect on ${day}. From then on, you have to accept them to use Pilothouse.`],
      button: { label: "Read the terms", url },
    } as const;
    for (const owner of await listOwners(tx)) await mailer.send(tx, mailTo(owner, mail));
  }

  async function notifyAll(tx: Tx): Promise<void> {
    const now = clock.now();
    let soonest = now + noticeMs;
    for (const revision of await lockUnannounced(tx)) {
      const effectiveAt = Math.max(revision.effective_at.getTime(), soonest);
      // Effective dates must be distinct.
      soonest = effectiveAt + 1;
      const announced = { ...revision, told_at: new Date(now), effective_at: new Date(effectiveAt) };
      await markAnnounced(tx, announced);
      await notifyOwners(tx, announced);
    }
  }

  return {
    isDue: () => revisionsAreUnannounced,
    run: () => db.transaction(notifyAll),
    failureMessage: "failed to notify owners of new terms",
  };
}
