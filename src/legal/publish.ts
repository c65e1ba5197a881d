import type { Mailer } from "../mail/mailer.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { insertRevision, listOwners } from "./store.ts";

/** Milliseconds between the mail to owners and the day from which a revision has to be accepted. */
const notice = 14 * 86_400_000;

/** A revision that the operator publishes. */
export interface NewRevision {
  readonly id: string;
  readonly url: string;
  readonly publishedAt: Date;
  readonly effectiveAt: Date;
}

/** Publishes a revision, and tells the owners of all accounts by mail. Throws a RangeError for one that comes too soon. */
export async function publishRevision(
  tx: Tx,
  mailer: Pick<Mailer, "send">,
  { id, url, publishedAt, effectiveAt }: NewRevision,
) {
  if (effectiveAt.getTime() - publishedAt.getTime() < notice)
    throw new RangeError("a revision comes into force 14 days after its mail, or later");
  await insertRevision(tx, { id, url, published_at: publishedAt, effective_at: effectiveAt });
  const day = effectiveAt.toISOString().slice(0, 10);
  for (const owner of await listOwners(tx)) {
    await mailer.send(tx, {
      ...{ to: owner.email, userId: owner.id, kind: "security", subject: "Our terms change" },
      lines: [`Hello ${owner.name},`, `new terms come into force on ${day}. From then on they have to be accepted.`],
      button: { label: "Read the terms", url },
    });
  }
}
