import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Clock } from "../platform/clock.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import { insertRevision, listOwners, lockUntold, noteTold, type RevisionRow } from "./store.ts";

/** Milliseconds between the mail to owners and the day from which a revision has to be accepted. */
const notice = 14 * 86_400_000;

/** Milliseconds between two looks for revisions of which owners are to be told. */
const every = 5_000;

/** A revision that the operator publishes. */
export interface NewRevision {
  readonly id: string;
  readonly url: string;
  readonly publishedAt: Date;
  readonly effectiveAt: Date;
}

/** Publishes a revision; gateways tell owners. False when its name is taken. Throws a RangeError for one that comes too soon. */
export async function publishRevision(tx: Tx, { id, url, publishedAt, effectiveAt }: NewRevision): Promise<boolean> {
  if (effectiveAt.getTime() - publishedAt.getTime() < notice)
    throw new RangeError("a revision comes into force 14 days after its mail, or later");
  return await insertRevision(tx, { id, url, published_at: publishedAt, effective_at: effectiveAt, told_at: null });
}

export interface TermsMailParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly mailer: Mailer;
}

/**
 * Makes the job that tells the owners of all accounts of a new revision, once: the mails are committed with the note that
 * they were written. A revision that is told of late comes into force later.
 */
export function termsMailJob({ db, clock, mailer }: TermsMailParts): RepeatedWork {
  async function tellOwners(tx: Tx, { url, effective_at: effectiveAt }: RevisionRow): Promise<void> {
    const day = effectiveAt.toISOString().slice(0, 10);
    const mail = {
      kind: "security",
      subject: "Our terms change",
      lines: [`New terms come into force on ${day}. From then on they have to be accepted.`],
      button: { label: "Read the terms", url },
    } as const;
    for (const owner of await listOwners(tx)) await mailer.send(tx, mailTo(owner, mail));
  }

  async function tellAll(tx: Tx): Promise<void> {
    const now = clock.now();
    let soonest = now + notice;
    for (const revision of await lockUntold(tx)) {
      const effectiveAt = Math.max(revision.effective_at.getTime(), soonest);
      // No two come into force at once.
      soonest = effectiveAt + 1;
      const told = { ...revision, told_at: new Date(now), effective_at: new Date(effectiveAt) };
      await noteTold(tx, told);
      await tellOwners(tx, told);
    }
  }

  return {
    run: () => db.transaction(tellAll),
    every,
    complaint: "owners cannot be told of new terms at the moment",
  };
}
