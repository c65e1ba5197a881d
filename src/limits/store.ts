import { sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { dayAt, type Month } from "./month.ts";

/** What was used on a day. */
export interface UsageDay {
  /** `2026-11-22`. */
  readonly day: string;
  readonly sessionMs: number;
  /** Sessions that went live on it. */
  readonly sessions: number;
}

/** What the database has of a month's usage, all of it as at one moment. */
export interface StoredUsage {
  /** What ended sessions took. */
  readonly days: readonly UsageDay[];
  readonly running: readonly {
    readonly id: string;
    /** The tier that it was created under. */
    readonly tier: string | null;
    /** Milliseconds since the Unix epoch; null until it is live. */
    readonly liveAt: number | null;
  }[];
  /** PostgreSQL's time, by which sessions are live and end. */
  readonly now: number;
}

const usageStatement = {
  name: "usage-of-month",
  text: `select
      (select coalesce(json_agg(json_build_object('day', day, 'sessionMs', session_ms, 'sessions', sessions)), '[]')
        from account_usage where account_id = $1 and day >= $2 and day < $3) as days,
      (select coalesce(json_agg(json_build_object('id', id, 'tier', tier,
          'liveAt', floor(extract(epoch from live_at) * 1000)) order by id), '[]')
        from sessions where account_id = $1 and status in ('provisioning', 'live', 'paused')) as running,
      floor(extract(epoch from app_now()) * 1000)::float8 as now`,
};

/** Reads the usage of a month in one statement: a session that ends meanwhile is either running in it, or metered. */
export async function readUsage(db: Queryable, accountId: string, month: Month): Promise<StoredUsage> {
  const [row] = await db.named<StoredUsage>(usageStatement, [accountId, dayAt(month.startsAt), dayAt(month.endsAt)]);
  if (!row) throw new Error("the statement that reads usage has given no row");
  return row;
}

/** Adds to the usage of days, of which each is there once. */
export function upsertUsage(tx: Tx, rows: readonly (UsageDay & { readonly accountId: string })[]) {
  return tx.sql
    .insertInto("account_usage")
    .values(
      rows.map(({ accountId, day, sessionMs, sessions }) => ({
        ...{ account_id: accountId, day, session_ms: sessionMs, sessions },
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(["account_id", "day"]).doUpdateSet({
        session_ms: sql<string>`account_usage.session_ms + excluded.session_ms`,
        sessions: sql<number>`account_usage.sessions + excluded.sessions`,
      }),
    );
}

/** What a threshold of a quota is known by. */
export interface QuotaThreshold {
  readonly accountId: string;
  readonly quota: string;
  readonly month: Month;
  readonly percent: number;
  readonly limit: number;
}

/** Notes that a threshold was reached; false when that is known. */
export async function noteThreshold(tx: Tx, threshold: QuotaThreshold): Promise<boolean> {
  const { accountId, quota, month, percent, limit } = threshold;
  const key = { account_id: accountId, quota, month: dayAt(month.startsAt), percent, limit_value: limit };
  const inserted = tx.sql
    .insertInto("quota_notices")
    .values(key)
    .onConflict((conflict) => conflict.doNothing());
  return (await inserted.returning("percent").executeTakeFirst()) !== undefined;
}

/** Has an account looked at by a time at the latest. */
export function lookBy(tx: Tx, accountId: string, at: number): void {
  tx.send(
    tx.sql
      .insertInto("quota_looks")
      .values({ account_id: accountId, look_at: new Date(at) })
      .onConflict((conflict) =>
        conflict.column("account_id").doUpdateSet({ look_at: sql<Date>`least(quota_looks.look_at, excluded.look_at)` }),
      ),
  );
}

/** Lists accounts that are to be looked at by now. */
export async function findDueLooks(db: Queryable, now: number, limit: number): Promise<string[]> {
  const due = db.sql.selectFrom("quota_looks").select("account_id").where("look_at", "<=", new Date(now));
  const rows = await due.orderBy("look_at").limit(limit).execute();
  return rows.map(({ account_id }) => account_id);
}

/** Takes the look at an account that is due; false when another gateway has it. */
export async function takeLook(tx: Tx, accountId: string, now: number): Promise<boolean> {
  const due = tx.sql
    .selectFrom("quota_looks")
    .select("account_id")
    .where("account_id", "=", accountId)
    .where("look_at", "<=", new Date(now));
  return (await due.forUpdate().skipLocked().executeTakeFirst()) !== undefined;
}

/** Sets when an account is looked at next; undefined when its next create will say. */
export function setLook(tx: Tx, accountId: string, at: number | undefined): void {
  if (at === undefined) tx.send(tx.sql.deleteFrom("quota_looks").where("account_id", "=", accountId));
  else
    tx.send(
      tx.sql
        .updateTable("quota_looks")
        .set({ look_at: new Date(at) })
        .where("account_id", "=", accountId),
    );
}
