import { type RawBuilder, type SqlBool, sql } from "kysely";
import { lockClass } from "../platform/postgres/advisory-lock.ts";
import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";

/** Consecutive failures from which a queue counts as failing. Must match release_queue in tables.ts. */
export const failingFrom = 3;

export interface JobToAdd {
  readonly queue: string;
  readonly data: unknown;
  readonly owner?: string;
  readonly order?: string;
}

/** A queue claimed by this gateway. */
export interface ClaimedQueue {
  readonly kind: string;
  readonly queue: string;
  readonly owner: string | null;
  readonly claim: string;
  readonly failures: number;
  /** First due job, if any. */
  readonly first: StoredJob | undefined;
}

export interface StoredJob {
  readonly id: string;
  readonly data: unknown;
  readonly attempts: number;
  readonly due_at: Date;
  /** Null after the first attempt, and for jobs without a key. */
  readonly order_key: string | null;
}

// Clocks of gateways differ: `latest_at` keeps a job from being due before its predecessor. Ids follow the order of the
// select.
const insertStatement: NamedStatement = {
  name: "job-insert",
  text: `with own as (
      insert into job_queues as queues (kind, queue, owner, due_at, latest_at)
      select $1::text, queue, owner, $2::timestamptz, $2::timestamptz from unnest($3::text[], $4::text[]) as new (queue, owner)
      on conflict (kind, queue) do update set owner = excluded.owner,
        due_at = least(queues.due_at, excluded.due_at), latest_at = greatest(queues.latest_at, excluded.latest_at)
      returning queue, latest_at
    )
    insert into jobs (kind, queue, data, order_key, due_at)
    select $1::text, queue, data, order_key, latest_at
    from unnest($5::text[], $6::jsonb[], $7::text[]) with ordinality as new (queue, data, order_key, nth)
      join own using (queue)
    order by nth`,
};

/**
 * Adds jobs. The statement is sent no later than the commit, and locks the queues until then (see release_queue in
 * tables.ts).
 */
export function insertJobs(tx: Tx, kind: string, jobs: readonly JobToAdd[], now: Date): void {
  const queues = [...new Map(jobs.map(({ queue, owner }) => [queue, owner ?? null]))].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  tx.sendNamed(insertStatement, [
    kind,
    now,
    queues.map(([queue]) => queue),
    queues.map(([, owner]) => owner),
    jobs.map(({ queue }) => queue),
    jobs.map(({ data }) => JSON.stringify(data)),
    jobs.map(({ order }) => order ?? null),
  ]);
}

const findStatement: NamedStatement = {
  name: "job-find-queues",
  text: "select queue from job_queues where kind = $1 and queue = any($2)",
};

/** Commits without waiting for the disk. If a crash loses the commit, at worst jobs run again. */
const commitAsynchronously = "set_config('synchronous_commit', 'off', true)";

/**
 * Claims the chosen queues of kind $1 and reads the first job of each that is due at $2. The upper half of a claim's
 * number is the number of the gateway's lock. The lower half is random, because a sequence would issue numbers of lost
 * commits again.
 */
const claimChosen = (gateway: string, lease: string, more: string): string => `claimed as (
      update job_queues
      set claim = (${gateway}::bigint << 32) + (random() * 4294967295)::bigint, leased_until = app_now() + ${lease} * interval '1 millisecond'
      from chosen
      where job_queues.ctid = chosen.ctid
      returning kind, job_queues.queue, owner, claim, failures
    )
    select claimed.*, ${more} as waiting, first.*, ${commitAsynchronously}
    from claimed left join lateral (
      select id, data, attempts, due_at, case when attempts = 0 then order_key end as order_key from jobs
      where kind = $1 and queue = claimed.queue and dead_at is null and due_at <= $2
      order by due_at, id limit 1
    ) as first on true`;

/** Claims queues by name. The cost does not depend on the number of due queues. */
const claimNamedStatement: NamedStatement = {
  name: "job-claim-named",
  text: `with chosen as (
      select ctid from job_queues
      where kind = $1 and due_at <= $2 and queue = any($3) and claim is null and failures < ${failingFrom}
      order by due_at limit $4
      for update skip locked
    ), ${claimChosen("$5", "$6", "0")}`,
};

/*
 * Claims from all due queues, in turns by owner: the first queue of each owner precedes any owner's second queue.
 * Running queues of this gateway count towards their owner. Rows changed since the snapshot (other `xmin`) are left to
 * the next claim.
 */
const claimStatement: NamedStatement = {
  name: "job-claim",
  text: `with due as (
      select ctid, xmin, queue, due_at, failures >= ${failingFrom} as failing, coalesce(owner, queue) as owner
      from job_queues where kind = $1 and due_at <= $2 and claim is null
    ), turns as (
      select *, row_number() over (partition by failing, owner order by due_at)
          + coalesce(($3::jsonb ->> (failing || ' ' || owner))::integer, 0) as turn
      from due
    ), ranked as (
      select *, row_number() over (partition by failing order by turn, due_at) as nth from turns
    ), chosen as (
      select queues.ctid
      from ranked join job_queues as queues on queues.ctid = ranked.ctid and queues.xmin = ranked.xmin
      where claim is null and nth <= case when failing then $4::integer when turn <= 1 then $5 else $6 end
      for update of queues skip locked
    ), ${claimChosen("$7", "$8", "(select count(*) from ranked)::integer")}`,
};

const dueKindsStatement: NamedStatement = {
  name: "job-due-kinds",
  text: `select kind from unnest($1::text[]) as kinds (kind)
    where exists (select from job_queues where kind = kinds.kind and due_at <= $2 and claim is null)`,
};

const freeStatement: NamedStatement = {
  name: "job-free",
  text: `with alive as materialized (
      select objid::bigint as gateway from pg_locks
      where locktype = 'advisory' and classid::bigint = ${lockClass} and granted
        and database = (select oid from pg_database where datname = current_database())
    )
    update job_queues set claim = null, leased_until = null where ctid = any(array(
      select ctid from job_queues where claim is not null
        and (leased_until < app_now() or claim >> 32 > 0 and claim >> 32 not in (select gateway from alive))
      for update skip locked
    ))`,
};

const renewStatement: NamedStatement = {
  name: "job-renew",
  text: `update job_queues set leased_until = app_now() + $2 * interval '1 millisecond'
    where claim = any($1) returning claim`,
};

const dueStatement: NamedStatement = {
  name: "job-due-next",
  text: `select id, data, attempts, due_at, case when attempts = 0 then order_key end as order_key from jobs
    where kind = $1 and queue = $2 and dead_at is null and due_at <= $3 and id <> all($4)
      and case when attempts > 0 then $5 else order_key is null or order_key <> all($6) end
    order by due_at, id limit $7`,
};

const doneStatement: NamedStatement = {
  name: "job-done-once",
  text: `with own as (
      update job_queues set failures = 0 where kind = $2 and queue = $3 and failures > 0
    )
    delete from jobs where id = $1 returning 1`,
};

const failedStatement: NamedStatement = {
  name: "job-failed-once",
  text: `with own as (
      update job_queues set failures = failures + $8 where kind = $2 and queue = $3 and claim = $4 returning 1
    )
    update jobs set attempts = attempts + 1, complaint = $5, due_at = coalesce($6, due_at), dead_at = $7
    where id = $1 and exists (select from own) returning 1`,
};

const dropStatement: NamedStatement = {
  name: "job-drop",
  text: `delete from jobs where id in (
      select id from jobs where kind = $1 and queue = $2 and dead_at is null order by due_at, id limit $3
      for update skip locked
    ) returning data`,
};

const releaseStatement: NamedStatement = {
  name: "job-release",
  text: `select release_queue($1, $2, $3, $4) as due_at, ${commitAsynchronously}`,
};

// Joins through the queues, because jobs are indexed by queue only.
const oldestStatement: NamedStatement = {
  name: "job-oldest",
  text: `select kind, (
        select min((select min(due_at) from jobs where kind = queues.kind and queue = queues.queue and dead_at is null))
        from job_queues as queues where queues.kind = kinds.kind and queues.due_at <= $2
      ) as due_at,
      (select count(*) from jobs where jobs.kind = kinds.kind and dead_at is not null)::integer as dead
    from unnest($1::text[]) as kinds (kind)`,
};

const sweepStatement: NamedStatement = {
  name: "job-sweep",
  text: `delete from jobs where id in (
      select id from jobs where kind = $1 and dead_at < $2::timestamptz - interval '30 days' limit $3
    ) returning 1`,
};

/** Returns the given queues that exist. A queue with pending jobs always exists. */
export async function findQueues(db: Queryable, kind: string, queues: readonly string[]): Promise<string[]> {
  return (await db.named<{ queue: string }>(findStatement, [kind, queues])).map(({ queue }) => queue);
}

interface ClaimTerms {
  readonly kind: string;
  readonly now: Date;
  /** Number of the gateway's lock, or 0 while the gateway does not hold its lock. */
  readonly gateway: number;
  readonly leaseMs: number;
}

/** Maximum numbers of due queues to claim. */
export interface QueueClaim extends ClaimTerms {
  /** Running queues, counted by `<is failing> <owner>`. */
  readonly busy: Readonly<Record<string, number>>;
  readonly failing: number;
  /** Healthy queues. */
  readonly healthy: number;
  /** Healthy queues of owners that already run a queue. */
  readonly second: number;
}

/** A queue joined with the columns of its first job, which are null if no job is due. */
type ClaimRow = Omit<ClaimedQueue, "first"> & (StoredJob | { readonly id: null }) & { readonly waiting: number };

const toClaimed = (row: ClaimRow): ClaimedQueue => ({ ...row, first: row.id === null ? undefined : row });

/** Condition: a queue of the kinds is due and not claimed. */
export const queuesAreDue = (kinds: readonly string[], now: Date): RawBuilder<SqlBool> =>
  sql`exists (select from job_queues where kind = any(${kinds}::text[]) and due_at <= ${now} and claim is null)`;

/** Condition: a queue is claimed. */
export const queuesAreClaimed: RawBuilder<SqlBool> = sql`exists (select from job_queues where claim is not null)`;

/** Returns the given kinds that have a due, unclaimed queue. */
export async function findDueKinds(db: Queryable, kinds: readonly string[], now: Date): Promise<string[]> {
  return (await db.named<{ kind: string }>(dueKindsStatement, [kinds, now])).map(({ kind }) => kind);
}

/** Claims due queues. `waiting` is the number of unclaimed due queues before the claim, or 0 if none was claimed. */
export async function claimQueues(
  db: Queryable,
  claim: QueueClaim,
): Promise<{ queues: ClaimedQueue[]; waiting: number }> {
  const { kind, now, busy, failing, healthy, second, gateway, leaseMs } = claim;
  const rows = await db.named<ClaimRow>(claimStatement, [
    kind,
    now,
    JSON.stringify(busy),
    failing,
    healthy,
    second,
    gateway,
    leaseMs,
  ]);
  return { queues: rows.map(toClaimed), waiting: rows[0]?.waiting ?? 0 };
}

/** Claims up to `limit` healthy due queues by name. */
export async function claimNamedQueues(
  db: Queryable,
  terms: ClaimTerms & { readonly queues: readonly string[]; readonly limit: number },
): Promise<ClaimedQueue[]> {
  const { kind, now, queues, limit, gateway, leaseMs } = terms;
  return (await db.named<ClaimRow>(claimNamedStatement, [kind, now, queues, limit, gateway, leaseMs])).map(toClaimed);
}

/** Releases queues with an expired lease, and queues of gateways that no longer hold their lock. */
export async function freeQueues(db: Queryable): Promise<void> {
  await db.named(freeStatement, []);
}

/** Renews leases. Returns the claims that are still valid. */
export async function renewLeases(db: Queryable, claims: readonly string[], leaseMs: number): Promise<string[]> {
  return (await db.named<{ claim: string }>(renewStatement, [claims, leaseMs])).map(({ claim }) => claim);
}

/** Conditions for jobs to read. */
export interface DueJobQuery {
  readonly now: Date;
  readonly known: readonly string[];
  readonly retries: boolean;
  /** Order keys with a running job. */
  readonly busy: readonly string[];
  readonly limit: number;
}

/** Reads the first due jobs of a queue that may start. */
export function readDueJobs(db: Queryable, { kind, queue }: ClaimedQueue, query: DueJobQuery): Promise<StoredJob[]> {
  const { now, known, retries, busy, limit } = query;
  return db.named<StoredJob & object>(dueStatement, [kind, queue, now, known, retries, busy, limit]);
}

/**
 * Deletes a completed job, even if another gateway has claimed the queue since, to avoid another run. Returns whether
 * the job existed.
 */
export async function deleteDoneJob(db: Queryable, { kind, queue }: ClaimedQueue, id: string): Promise<boolean> {
  return (await db.named(doneStatement, [id, kind, queue])).length > 0;
}

/** Deletes up to `limit` pending jobs of a queue and returns their data. */
export async function deleteJobs(db: Queryable, kind: string, queue: string, limit: number): Promise<unknown[]> {
  return (await db.named<{ data: unknown }>(dropStatement, [kind, queue, limit])).map(({ data }) => data);
}

/** Result of a failed attempt: the time of the next attempt, or the time at which the job became a dead letter. */
export interface FailedAttempt {
  readonly message: string;
  readonly dueAt?: Date;
  readonly deadAt?: Date;
  /** Whether the failure adds to the queue's consecutive failures. */
  readonly countsForQueue: boolean;
}

/** Records a failure. Returns false if the claim or the job is gone. */
export async function recordFailure(
  db: Queryable,
  queue: ClaimedQueue,
  id: string,
  { message, dueAt, deadAt, countsForQueue }: FailedAttempt,
): Promise<boolean> {
  const next = [dueAt ?? null, deadAt ?? null];
  const values = [id, queue.kind, queue.queue, queue.claim, message, ...next, countsForQueue ? 1 : 0];
  return (await db.named(failedStatement, values)).length > 0;
}

/** Releases a queue. Returns the due time of its first job, or null if the queue is empty or the claim was lost. */
export async function releaseQueue(
  db: Queryable,
  { kind, queue, claim }: ClaimedQueue,
  now: Date,
): Promise<Date | null> {
  const [row] = await db.named<{ due_at: Date | null }>(releaseStatement, [kind, queue, claim, now]);
  return row?.due_at ?? null;
}

/** Reads, for each kind, the due time of the oldest due job (null if none is due) and the number of dead letters. */
export function readBacklogs(db: Queryable, kinds: readonly string[], now: Date) {
  return db.named<{ kind: string; due_at: Date | null; dead: number }>(oldestStatement, [kinds, now]);
}

/** Deletes up to `limit` dead letters older than 30 days. Returns their number. */
export async function deleteOldDeadLetters(db: Queryable, kind: string, now: Date, limit: number): Promise<number> {
  return (await db.named(sweepStatement, [kind, now, limit])).length;
}

const unclaimedStatement: NamedStatement = {
  name: "job-unclaimed",
  text: `select greatest(due_at, case when claim is not null then leased_until end) as since from job_queues as queues
    where kind = $1 and due_at <= $2 and failures = 0 and (claim is null or leased_until < app_now())
      and not exists (
        select from job_queues as held
        where held.kind = $1 and held.owner = queues.owner and held.claim is not null and held.leased_until >= app_now()
      )
    order by since limit 1`,
};

/**
 * Returns the earliest time since which a queue of the kind has been due without a valid lease, or undefined if there
 * is no such queue. Considers only queues without consecutive failures and without a running queue of the same owner.
 */
export async function findOldestUnclaimed(db: Queryable, kind: string, now: Date): Promise<Date | undefined> {
  const [row] = await db.named<{ since: Date }>(unclaimedStatement, [kind, now]);
  return row?.since;
}
