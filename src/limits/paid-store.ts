import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { type PaidGrant, paidTimeEnd } from "./paid-time.ts";
import { tiers } from "./tiers.ts";

const dateOf = (time: number | null | undefined): Date | null => (typeof time === "number" ? new Date(time) : null);

/** Lists the grants of an account that have not ended. */
export async function listGrants(db: Queryable, accountId: string): Promise<PaidGrant[]> {
  const rows = await db.sql
    .selectFrom("tier_grants")
    .selectAll()
    .where("account_id", "=", accountId)
    .where("ended_at", "is", null)
    .orderBy("id")
    .execute();
  return rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    tier: tiers.get(row.tier).name,
    months: row.months,
    createdAt: row.created_at.getTime(),
    leftMs: row.left_ms === null ? null : Number(row.left_ms),
    runningSince: row.running_since?.getTime() ?? null,
    until: row.until?.getTime() ?? null,
    endedAt: null,
  }));
}

export function saveGrant(tx: Tx, accountId: string, sandbox: boolean, grant: PaidGrant): void {
  const { id, kind, tier, months, createdAt, leftMs, runningSince, until, endedAt } = grant;
  const state = {
    tier,
    months,
    left_ms: leftMs,
    running_since: dateOf(runningSince),
    until: dateOf(until),
    ends_at: dateOf(endedAt === null ? paidTimeEnd(grant) : null),
    ended_at: dateOf(endedAt),
  };
  const made = { id, account_id: accountId, kind, sandbox, created_at: new Date(createdAt) };
  tx.send(
    tx.sql
      .insertInto("tier_grants")
      .values({ ...made, ...state })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(state)),
  );
}

/** Condition: `findDueAccounts` would list an account. */
export const grantsAreDue = (now: Date, endsSandbox: boolean): RawBuilder<SqlBool> => sql`(
  exists (select from tier_grants where ended_at is null and ends_at <= ${now})
  or ${endsSandbox} and exists (select from tier_grants where ended_at is null and sandbox)
)`;

/**
 * Lists up to 100 accounts with grants to end. If `endsSandbox` is true, all grants of a payment sandbox count as due.
 */
export async function findDueAccounts(db: Queryable, now: Date, endsSandbox: boolean): Promise<string[]> {
  const rows = await db.sql
    .selectFrom("tier_grants")
    .select("account_id")
    .distinct()
    .where("ended_at", "is", null)
    .where((where) => where.or([where("ends_at", "<=", now), ...(endsSandbox ? [where("sandbox", "=", true)] : [])]))
    .limit(100)
    .execute();
  return rows.map(({ account_id }) => account_id);
}

/** Lists the ids of an account's open grants that a payment sandbox created. */
export async function listSandboxGrants(db: Queryable, accountId: string): Promise<string[]> {
  const rows = await db.sql
    .selectFrom("tier_grants")
    .select("id")
    .where("account_id", "=", accountId)
    .where("ended_at", "is", null)
    .where("sandbox", "=", true)
    .execute();
  return rows.map(({ id }) => id);
}
