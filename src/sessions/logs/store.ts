import { sql } from "kysely";
import type { Database, Queryable, Tx } from "../../platform/postgres/database.ts";

/** Days that a partition is kept after its own day (UTC), so that a log can be read for 7 days. */
export const keptDays = 7;

/** Maximum bytes of an account's stored logs. */
export const accountLogBytes = 200 * 1024 * 1024;

const dayMs = 86_400_000;

/**
 * Milliseconds for the statements of an insert, and for the lock of a dropped table. Logs must not delay a busy
 * database.
 */
const databaseTimeout = 1_500;

/** Key of an advisory lock of PostgreSQL, so that two processes do not create a partition at once. */
const partitionLock = 7_031_131;

const partitionName = /^session_logs_(\d{4})(\d{2})(\d{2})$/;

/** Returns the UTC day of a time, `YYYY-MM-DD`, shifted by a number of days. */
export const dayOf = (time: number, days = 0): string => new Date(time + days * dayMs).toISOString().slice(0, 10);

interface SealedLog {
  readonly sessionId: string;
  readonly accountId: string;
  readonly data: Buffer;
}

/** A session for which a log may be stored. */
interface LogOwner {
  readonly id: string;
  readonly account_id: string;
  readonly placement_epoch: string;
}

/**
 * Returns those of the sessions that have a log, and that run on the worker or ended on the worker within the last
 * hour.
 */
export async function findLogOwners(db: Queryable, workerId: string, ids: readonly string[]): Promise<LogOwner[]> {
  return (
    db.sql
      .selectFrom("sessions")
      .select(["id", "account_id", "placement_epoch"])
      .where("id", "in", ids)
      .where("worker_id", "=", workerId)
      .where("logs", "in", ["errors", "full"])
      // A worker sends a log once, at the end of its session.
      .where((where) =>
        where.or([where("ended_at", "is", null), where("ended_at", ">", sql<Date>`app_now() - interval '1 hour'`)]),
      )
      .execute()
  );
}

/**
 * Creates the partition of a day, if it does not exist. Unlike `partition of`, attaching does not wait for readers. A
 * backup by pg_dump reads the table until the backup ends.
 */
export async function createPartition(db: Database, day: string): Promise<void> {
  const name = `session_logs_${day.replaceAll("-", "")}`;
  const [from, to] = [sql.lit(day), sql.lit(dayOf(Date.parse(day), 1))];
  await db.transaction(async (tx) => {
    await sql`select pg_advisory_xact_lock(${partitionLock})`.execute(tx.sql);
    const { rows } = await sql<{ exists: boolean }>`select to_regclass(${name}) is not null as exists`.execute(tx.sql);
    if (rows[0]?.exists) return;
    await sql`create table ${sql.table(name)} (like session_logs including all)`.execute(tx.sql);
    await sql`alter table session_logs attach partition ${sql.table(name)}
      for values from (${from}) to (${to})`.execute(tx.sql);
  });
}

/** Inserts logs in the partition of a day, which must exist. Returns the number of new logs. */
export async function insertLogs(tx: Tx, day: string, logs: readonly SealedLog[]): Promise<number> {
  await sql`set local statement_timeout = ${sql.lit(databaseTimeout)}`.execute(tx.sql);
  const inserted = await tx.sql
    .insertInto("session_logs")
    .values(
      logs.map(({ sessionId, accountId, data }) => ({
        session_id: sessionId,
        account_id: accountId,
        stored_on: day,
        bytes: data.length,
        data,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returning(["account_id", "bytes"])
    .execute();
  const usage = new Map<string, number>();
  for (const { account_id, bytes } of inserted) usage.set(account_id, (usage.get(account_id) ?? 0) + bytes);
  // All transactions use the same order, so that they do not deadlock.
  const sorted = [...usage].sort(([one], [other]) => (one < other ? -1 : 1));
  if (sorted.length > 0)
    await tx.sql
      .insertInto("session_log_usage")
      .values(sorted.map(([accountId, bytes]) => ({ account_id: accountId, stored_on: day, bytes })))
      .onConflict((conflict) =>
        conflict
          .columns(["account_id", "stored_on"])
          .doUpdateSet({ bytes: sql`session_log_usage.bytes + excluded.bytes` }),
      )
      .execute();
  return inserted.length;
}

/** Returns the sealed log of an ended session, if it is stored. */
export async function findLog(
  db: Queryable,
  { id, accountId, endedAt }: { readonly id: string; readonly accountId: string; readonly endedAt: number },
): Promise<Buffer | undefined> {
  const row = await db.sql
    .selectFrom("session_logs")
    .select("data")
    .where("session_id", "=", id)
    .where("account_id", "=", accountId)
    // Reads few partitions. The clocks of the processes may differ.
    .where("stored_on", ">=", dayOf(endedAt, -1))
    .where("stored_on", "<=", dayOf(endedAt, 1))
    .executeTakeFirst();
  return row?.data;
}

/** Drops the partitions and the usage of days before a day. Returns the number of dropped partitions. */
export async function dropPartitions(db: Database, before: string): Promise<number> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'session_logs'::regclass`.execute(db.sql);
  const expired = rows.filter(({ name }) => {
    const [, year, month, day] = partitionName.exec(name) ?? [];
    return day !== undefined && `${year}-${month}-${day}` < before;
  });
  for (const { name } of expired)
    await db.transaction(async (tx) => {
      // Dropping waits for readers, and blocks further readers meanwhile. If the lock times out, the next run tries
      // again.
      await sql`set local lock_timeout = ${sql.lit(databaseTimeout)}`.execute(tx.sql);
      await sql`drop table if exists ${sql.table(name)}`.execute(tx.sql);
    });
  await db.sql.deleteFrom("session_log_usage").where("stored_on", "<", before).execute();
  return expired.length;
}

/** Deletes the oldest logs of accounts that have more than `limit` bytes. */
export async function trimLogs(db: Database, limit: number): Promise<void> {
  const { rows } = await sql<{ account_id: string }>`
    select account_id from session_log_usage group by account_id having sum(bytes) > ${limit} limit 1000`.execute(
    db.sql,
  );
  for (const { account_id: accountId } of rows) {
    // The primary key names a row in all partitions; a ctid would not.
    await sql`
      with sized as (
        select session_id, stored_on,
          sum(bytes) over (order by stored_on desc, session_id desc) as newer
        from session_logs where account_id = ${accountId}
      ), gone as (
        delete from session_logs where (session_id, stored_on) in
          (select session_id, stored_on from sized where newer > ${limit})
        returning stored_on, bytes
      ), sums as (
        select stored_on, sum(bytes) as bytes from gone group by stored_on
      )
      update session_log_usage u set bytes = u.bytes - sums.bytes from sums
      where u.account_id = ${accountId} and u.stored_on = sums.stored_on`.execute(db.sql);
  }
}
