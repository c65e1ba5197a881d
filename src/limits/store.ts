import { type RawBuilder, type SqlBool, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { dayAt, type Month } from "./month.ts";

export interface UsageDay {
  /** Such as `2026-11-22`. */
  readonly day: string;
  readonly sessionMs: number;
  /** Sessions that went live on the day. */
  readonly sessions: number;
  readonly fetchMs: number;
  /** Fetches that began on the day. */
  readonly fetches: number;
}

/** Usage of a month, read in one snapshot. */
export interface StoredUsage {
  /** Usage by ended sessions and fetches. */
  readonly days: readonly UsageDay[];
  readonly running: readonly {
    readonly id: string;
    /** Tier at the creation of the session or fetch. */
    readonly tier: string;
    /** Unix time in milliseconds, or null if not live yet. */
    readonly liveAt: number | null;
    /** Browser of a fetch. Null for a session. */
    readonly fetchBrowser: string | null;
  }[];
  /** Time of PostgreSQL in Unix milliseconds. PostgreSQL's clock also determines start and end of sessions. */
  readonly now: number;
}

const usageStatement = {
  name: "usage-of-month",
  text: `select
      (select coalesce(json_agg(json_build_object('day', day, 'sessionMs', session_ms, 'sessions', sessions,
          'fetchMs', fetch_ms, 'fetches', fetches)), '[]')
        from account_usage where account_id = $1 and day >= $2 and day < $3) as days,
      (select coalesce(json_agg(json_build_object('id', id, 'tier', tier, 'fetchBrowser', browser_id,
          'liveAt', floor(extract(epoch from live_at) * 1000)) order by id), '[]')
        from (
          select id, tier, null as browser_id, live_at from sessions
            where account_id = $1 and status in ('provisioning', 'live', 'paused')
          union all
          select id, tier, browser_id, began_at from fetches where account_id = $1 and lapses_at > app_now()
        ) as running) as running,
      floor(extract(epoch from app_now()) * 1000)::float8 as now`,
};

/** Reads the usage of a month in one statement, so that a session that ends during the read counts exactly once. */
export async function readUsage(db: Queryable, accountId: string, month: Month): Promise<StoredUsage> {
  const [row] = await db.named<StoredUsage>(usageStatement, [accountId, dayAt(month.startsAt), dayAt(month.endsAt)]);
  if (!row) throw new Error("expected a row from usage-of-month, got none");
  return row;
}

/** Creates the statement that adds to the usage of days. Each pair of account and day may occur only once. */
export function upsertUsage(tx: Tx, rows: readonly (UsageDay & { readonly accountId: string })[]) {
  return tx.sql
    .insertInto("account_usage")
    .values(
      rows.map(({ accountId, day, sessionMs, sessions, fetchMs, fetches }) => ({
        account_id: accountId,
        day,
        session_ms: sessionMs,
        sessions,
        fetch_ms: fetchMs,
        fetches,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(["account_id", "day"]).doUpdateSet({
        session_ms: sql<string>`account_usage.session_ms + excluded.session_ms`,
        sessions: sql<number>`account_usage.sessions + excluded.sessions`,
        fetch_ms: sql<string>`account_usage.fetch_ms + excluded.fetch_ms`,
        fetches: sql<number>`account_usage.fetches + excluded.fetches`,
      }),
    );
}

export interface QuotaThreshold {
  readonly accountId: string;
  readonly quota: string;
  readonly month: Month;
  readonly percent: number;
  readonly limit: number;
}

/** Records a reached threshold. Returns false if it was recorded before. */
export async function recordThreshold(tx: Tx, threshold: QuotaThreshold): Promise<boolean> {
  const { accountId, quota, month, percent, limit } = threshold;
  const key = { account_id: accountId, quota, month: dayAt(month.startsAt), percent, limit_value: limit };
  const inserted = tx.sql
    .insertInto("quota_notices")
    .values(key)
    .onConflict((conflict) => conflict.doNothing());
  return (await inserted.returning("percent").executeTakeFirst()) !== undefined;
}

/** Schedules a check of an account's quota at `at` or earlier. */
export function scheduleCheck(tx: Tx, accountId: string, at: number): void {
  tx.send(
    tx.sql
      .insertInto("quota_looks")
      .values({ account_id: accountId, look_at: new Date(at) })
      .onConflict((conflict) =>
        conflict.column("account_id").doUpdateSet({ look_at: sql<Date>`least(quota_looks.look_at, excluded.look_at)` }),
      ),
  );
}

/** Condition: an account has a due quota check. */
export const checksAreDue = (now: number): RawBuilder<SqlBool> =>
  sql`exists (select from quota_looks where look_at <= ${new Date(now)})`;

/** Lists up to `limit` accounts with a due quota check, longest due first. */
export async function findDueChecks(db: Queryable, now: number, limit: number): Promise<string[]> {
  const due = db.sql.selectFrom("quota_looks").select("account_id").where("look_at", "<=", new Date(now));
  const rows = await due.orderBy("look_at").limit(limit).execute();
  return rows.map(({ account_id }) => account_id);
}

/** Locks the due quota check of an account. Returns false if no check is due or another gateway holds the lock. */
export async function lockDueCheck(tx: Tx, accountId: string, now: number): Promise<boolean> {
  const due = tx.sql
    .selectFrom("quota_looks")
    .select("account_id")
    .where("account_id", "=", accountId)
    .where("look_at", "<=", new Date(now));
  return (await due.forUpdate().skipLocked().executeTakeFirst()) !== undefined;
}

/** Sets the time of the next quota check. If `at` is undefined, removes the check: the next session create adds one. */
export function setNextCheck(tx: Tx, accountId: string, at: number | undefined): void {
  if (at === undefined) tx.send(tx.sql.deleteFrom("quota_looks").where("account_id", "=", accountId));
  else
    tx.send(
      tx.sql
        .updateTable("quota_looks")
        .set({ look_at: new Date(at) })
        .where("account_id", "=", accountId),
    );
}
