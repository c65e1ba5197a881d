import { sql } from "kysely";
import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";

/** Failures in a row from which a lane counts as failing: the indexes of tables.ts say so, too. */
export const failingFrom = 3;

/** A job to add. */
export interface NewJob {
  readonly kind: string;
  readonly lane: string;
  readonly data: unknown;
}

/** A lane that this gateway has. */
export interface ClaimedLane {
  readonly kind: string;
  readonly lane: string;
  readonly claim: string;
  readonly failures: number;
}

/** A job that is due. */
export interface StoredJob {
  readonly id: string;
  readonly data: unknown;
  readonly attempts: number;
}

/** How many lanes to claim at most: of those that work, and of those that fail. */
export interface FreePlaces {
  readonly sound: number;
  readonly failing: number;
}

/** Adds a job, at the latest with the commit. Locks the lane until then: see release_lane in tables.ts. */
export function insertJob(tx: Tx, { kind, lane, data }: NewJob, now: Date): void {
  // Clocks of gateways differ: a job is due no earlier than the one before it.
  const statement = sql`
    with own as (
      insert into work_lanes as lanes (kind, lane, due_at, latest_at) values (${kind}, ${lane}, ${now}, ${now})
      on conflict (kind, lane) do update set
        due_at = least(lanes.due_at, excluded.due_at), latest_at = greatest(lanes.latest_at, excluded.latest_at)
      returning latest_at
    )
    insert into work_jobs (kind, lane, data, due_at)
    select ${kind}::text, ${lane}::text, ${JSON.stringify(data)}::jsonb, latest_at from own`;
  tx.send({ compile: () => statement.compile(tx.sql) });
}

const claimable = `kind = $1 and due_at <= $2 and (leased_until is null or leased_until < clock_timestamp())
  order by due_at`;

const claimStatement: NamedStatement = {
  name: "work-claim",
  text: `with sound as (
      select kind, lane from work_lanes where failures < ${failingFrom} and ${claimable} limit $3 for update skip locked
    ), failing as (
      select kind, lane from work_lanes where failures >= ${failingFrom} and ${claimable} limit $4 for update skip locked
    )
    update work_lanes
    set claim = nextval('work_claims'), leased_until = clock_timestamp() + $5 * interval '1 millisecond'
    from (select * from sound union all select * from failing) as free
    where work_lanes.kind = free.kind and work_lanes.lane = free.lane
    returning work_lanes.kind, work_lanes.lane, claim, failures`,
};

const renewStatement: NamedStatement = {
  name: "work-renew",
  text: `update work_lanes set leased_until = clock_timestamp() + $2 * interval '1 millisecond'
    where claim = any($1) returning claim`,
};

const dueStatement: NamedStatement = {
  name: "work-due",
  text: `select id, data, attempts from work_jobs
    where kind = $1 and lane = $2 and dead_at is null and due_at <= $3 and id <> all($4)
    order by due_at, id limit $5`,
};

const doneStatement: NamedStatement = {
  name: "work-done",
  text: `with done as (delete from work_jobs where id = $1)
    update work_lanes set failures = 0 where kind = $2 and lane = $3 and failures > 0`,
};

const failedStatement: NamedStatement = {
  name: "work-failed",
  text: `with own as (
      update work_lanes set failures = failures + $8 where kind = $2 and lane = $3 and claim = $4 returning 1
    )
    update work_jobs set attempts = attempts + 1, complaint = $5, due_at = coalesce($6, due_at), dead_at = $7
    where id = $1 and exists (select from own)`,
};

const releaseStatement: NamedStatement = {
  name: "work-release",
  text: "select release_lane($1, $2, $3, $4) as due_at",
};

const oldestStatement: NamedStatement = {
  name: "work-oldest",
  text: `select kind, (select min(due_at) from work_jobs where work_jobs.kind = kinds.kind and dead_at is null) as due_at,
      (select count(*) from work_jobs where work_jobs.kind = kinds.kind and dead_at is not null)::integer as dead
    from unnest($1::text[]) as kinds (kind)`,
};

const sweepStatement: NamedStatement = {
  name: "work-sweep",
  text: `delete from work_jobs where id in (
      select id from work_jobs where kind = $1 and dead_at < $2::timestamptz - interval '30 days' limit $3
    ) returning 1`,
};

/** Claims lanes of a kind that are due, those first that have been so for longest. */
export function claimLanes(db: Queryable, kind: string, now: Date, free: FreePlaces, leaseMs: number) {
  return db.named<{ kind: string; lane: string; claim: string; failures: number }>(claimStatement, [
    ...[kind, now, free.sound, free.failing, leaseMs],
  ]);
}

/** Renews leases; gives the claims that still stand. */
export async function renewLeases(db: Queryable, claims: readonly string[], leaseMs: number): Promise<string[]> {
  return (await db.named<{ claim: string }>(renewStatement, [claims, leaseMs])).map(({ claim }) => claim);
}

/** Reads the first jobs of a lane that are due, without those that run. */
export function readDueJobs(
  db: Queryable,
  { kind, lane }: ClaimedLane,
  { now, running, limit }: { now: Date; running: readonly string[]; limit: number },
): Promise<StoredJob[]> {
  return db.named<{ id: string; data: unknown; attempts: number }>(dueStatement, [kind, lane, now, running, limit]);
}

/** Deletes a job that is done, also when its lane has another holder meanwhile: that spares it another run. */
export async function deleteDoneJob(db: Queryable, { kind, lane }: ClaimedLane, id: string): Promise<void> {
  await db.named(doneStatement, [id, kind, lane]);
}

/** What became of an attempt that has failed: when the next one is due, or since when there is none. */
export interface FailedAttempt {
  readonly complaint: string;
  readonly dueAt?: Date;
  readonly deadAt?: Date;
  /** Whether the lane is to blame. */
  readonly countsForLane: boolean;
}

/** Notes a failure, as long as the lane is this claim's. */
export async function noteFailure(db: Queryable, lane: ClaimedLane, id: string, failed: FailedAttempt): Promise<void> {
  const { complaint, dueAt, deadAt, countsForLane } = failed;
  await db.named(failedStatement, [
    ...[id, lane.kind, lane.lane, lane.claim, complaint, dueAt ?? null, deadAt ?? null, countsForLane ? 1 : 0],
  ]);
}

/** Lets go of a lane; gives when its first job is due, null when it has none. */
export async function releaseLane(db: Queryable, { kind, lane, claim }: ClaimedLane, now: Date): Promise<Date | null> {
  const [row] = await db.named<{ due_at: Date | null }>(releaseStatement, [kind, lane, claim, now]);
  return row?.due_at ?? null;
}

/** Reads of each kind when its oldest job was or is due, and how many dead letters it has. */
export function readBacklogs(db: Queryable, kinds: readonly string[]) {
  return db.named<{ kind: string; due_at: Date | null; dead: number }>(oldestStatement, [kinds]);
}

/** Deletes dead letters that were kept long enough, so many at most; says how many those were. */
export async function deleteOldLetters(db: Queryable, kind: string, now: Date, limit: number): Promise<number> {
  return (await db.named(sweepStatement, [kind, now, limit])).length;
}
