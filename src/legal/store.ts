import { type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import type { Recipient } from "../mail/mail.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { Schema } from "../platform/postgres/schema.ts";

export type RevisionRow = Selectable<Schema["terms_revisions"]>;

/** Lists all revisions by effective date. */
export async function listRevisions(db: Queryable): Promise<RevisionRow[]> {
  return await db.sql.selectFrom("terms_revisions").selectAll().orderBy("effective_at").execute();
}

/** Inserts a revision. Returns false if another revision has the same id or effective date. */
export async function insertRevision(tx: Tx, revision: RevisionRow): Promise<boolean> {
  const inserted = tx.sql
    .insertInto("terms_revisions")
    .values(revision)
    .onConflict((conflict) => conflict.doNothing());
  return (await inserted.returning("id").executeTakeFirst()) !== undefined;
}

/** Condition: a revision has not been announced. */
export const revisionsAreUnannounced: RawBuilder<SqlBool> = sql`exists (select from terms_revisions where told_at is null)`;

/** Locks and returns the unannounced revisions by effective date. Skips revisions locked by another transaction. */
export async function lockUnannounced(tx: Tx): Promise<RevisionRow[]> {
  const unannounced = tx.sql.selectFrom("terms_revisions").selectAll().where("told_at", "is", null);
  return await unannounced.orderBy("effective_at").forUpdate().skipLocked().execute();
}

/** Records that a revision was announced, and its effective date. */
export async function markAnnounced(tx: Tx, { id, told_at, effective_at }: RevisionRow): Promise<void> {
  await tx.sql.updateTable("terms_revisions").set({ told_at, effective_at }).where("id", "=", id).execute();
}

/** Returns whether an account has accepted a revision with this or a later effective date. */
export async function hasAccepted(db: Queryable, accountId: string, effectiveAt: Date): Promise<boolean> {
  const row = await db.sql
    .selectFrom("terms_acceptances as a")
    .innerJoin("terms_revisions as r", "r.id", "a.revision_id")
    .select("a.revision_id")
    .where("a.account_id", "=", accountId)
    .where("r.effective_at", ">=", effectiveAt)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Records an acceptance, and returns the time of the account's first acceptance of the revision. */
export async function insertAcceptance(
  tx: Tx,
  { accountId, revisionId, at }: { readonly accountId: string; readonly revisionId: string; readonly at: Date },
): Promise<Date> {
  const row = await tx.sql
    .insertInto("terms_acceptances")
    .values({ account_id: accountId, revision_id: revisionId, accepted_at: at })
    // A no-op update, so that the existing row is returned.
    .onConflict((conflict) =>
      conflict.columns(["account_id", "revision_id"]).doUpdateSet((of) => ({
        accepted_at: of.ref("terms_acceptances.accepted_at"),
      })),
    )
    .returning("accepted_at")
    .executeTakeFirstOrThrow();
  return row.accepted_at;
}

/** Lists the owners of all enabled accounts. */
export async function listOwners(db: Queryable): Promise<Recipient[]> {
  return await db.sql
    .selectFrom("users as u")
    .innerJoin("memberships as m", "m.user_id", "u.id")
    .innerJoin("accounts as a", "a.id", "m.account_id")
    .select(["u.id", "u.email", "u.name"])
    .distinct()
    .where("m.role", "=", "owner")
    .where("a.disabled_at", "is", null)
    .execute();
}
