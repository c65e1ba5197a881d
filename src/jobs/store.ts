import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";
import { lockClass } from "../platform/postgres/lone-lock.ts";

/** Failures in a row from which a lane counts as failing: release_lane in tables.ts says so, too. */
export const failingFrom = 3;

/** A job to add. */
export interface JobToAdd {
  readonly lane: string;
  readonly data: unknown;
  readonly owner?: string;
  readonly order?: string;
}

/** A lane that this gateway has. */
export interface ClaimedLane {
  readonly kind: string;
  readonly lane: string;
  readonly owner: string | null;
  readonly claim: string;
  readonly failures: number;
  /** Its first job; undefined when none was due. */
  readonly first: StoredJob | undefined;
}

/** A job that is due. */
export interface StoredJob {
  readonly id: string;
  readonly data: unknown;
  readonly attempts: number;
  readonly due_at: Date;
  /** Of a job that was never tried. */
  readonly order_key: string | null;
}

// Clocks of gateways differ: a job is due no earlier than the one before it. Numbers are given in the order of the select.
const insertStatement: NamedStatement = {
  name: "work-insert",
  text: `with own as (
      insert into work_lanes as lanes (kind, lane, owner, due_at, latest_at)
      select $1::text, lane, owner, $2::timestamptz, $2::timestamptz from unnest($3::text[], $4::text[]) as new (lane, owner)
      on conflict (kind, lane) do update set owner = excluded.owner,
        due_at = least(lanes.due_at, excluded.due_at), latest_at = greatest(lanes.latest_at, excluded.latest_at)
      returning lane, latest_at
    )
    insert into work_jobs (kind, lane, data, order_key, due_at)
    select $1::text, lane, data, order_key, latest_at
    from unnest($5::text[], $6::jsonb[], $7::text[]) with ordinality as new (lane, data, order_key, place)
      join own using (lane)
    order by place`,
};

/** Adds jobs, at the latest with the commit. Locks their lanes until then: see release_lane in tables.ts. */
export function insertJobs(tx: Tx, kind: string, jobs: readonly JobToAdd[], now: Date): void {
  const lanes = [...new Map(jobs.map(({ lane, owner }) => [lane, owner ?? null]))].sort(([a], [b]) => (a < b ? -1 : 1));
  tx.sendNamed(insertStatement, [
    ...[kind, now, lanes.map(([lane]) => lane), lanes.map(([, owner]) => owner)],
    ...[
      jobs.map(({ lane }) => lane),
      jobs.map(({ data }) => JSON.stringify(data)),
      jobs.map(({ order }) => order ?? null),
    ],
  ]);
}

const findStatement: NamedStatement = {
  name: "work-find-lanes",
  text: "select lane from work_lanes where kind = $1 and lane = any($2)",
};

/*
 * The commit does not wait for the disk. If PostgreSQL loses the commit in a crash, the lane is free or held as before: at worst
 * a job runs again. The upper half of a claim's number is that of its gateway. The lower half is random, since a sequence would
 * repeat the numbers that were lost.
 */
const commitAsynchronously = "set_config('synchronous_commit', 'off', true)";

/** What claims chosen lanes, of kind $1, and reads the first job of each that is due at $2. */
const claimChosen = (gateway: string, lease: string, more: string): string => `claimed as (
      update work_lanes
      set claim = (${gateway}::bigint << 32) + (random() * 4294967295)::bigint, leased_until = app_now() + ${lease} * interval '1 millisecond'
      from chosen
      where work_lanes.ctid = chosen.ctid
      returning kind, work_lanes.lane, owner, claim, failures
    )
    select claimed.*, ${more} as waiting, first.*, ${commitAsynchronously}
    from claimed left join lateral (
      select id, data, attempts, due_at, case when attempts = 0 then order_key end as order_key from work_jobs
      where kind = $1 and lane = claimed.lane and dead_at is null and due_at <= $2
      order by due_at, id limit 1
    ) as first on true`;

/** Costs the same however many lanes are due. */
const claimNamedStatement: NamedStatement = {
  name: "work-claim-named",
  text: `with chosen as (
      select ctid from work_lanes
      where kind = $1 and due_at <= $2 and lane = any($3) and claim is null and failures < ${failingFrom}
      order by due_at limit $4
      for update skip locked
    ), ${claimChosen("$5", "$6", "0")}`,
};

/*
 * Looks at all that is due. Owners have their turns: the first lane of each comes before the second of any, and what this
 * gateway runs of an owner counts already. A lane that somebody had since the look began is left to the next look: what it
 * shows of the lane is old.
 */
const claimStatement: NamedStatement = {
  name: "work-claim",
  text: `with due as (
      select ctid, xmin, lane, due_at, failures >= ${failingFrom} as failing, coalesce(owner, lane) as owner
      from work_lanes where kind = $1 and due_at <= $2 and claim is null
    ), turns as (
      select *, row_number() over (partition by failing, owner order by due_at)
          + coalesce(($3::jsonb ->> (failing || ' ' || owner))::integer, 0) as turn
      from due
    ), places as (
      select *, row_number() over (partition by failing order by turn, due_at) as place from turns
    ), chosen as (
      select lanes.ctid
      from places join work_lanes as lanes on lanes.ctid = places.ctid and lanes.xmin = places.xmin
      where claim is null and place <= case when failing then $4::integer when turn <= 1 then $5 else $6 end
      for update of lanes skip locked
    ), ${claimChosen("$7", "$8", "(select count(*) from places)::integer")}`,
};

const freeStatement: NamedStatement = {
  name: "work-free",
  text: `with alive as materialized (
      select objid::bigint as gateway from pg_locks
      where locktype = 'advisory' and classid::bigint = ${lockClass} and granted
        and database = (select oid from pg_database where datname = current_database())
    )
    update work_lanes set claim = null, leased_until = null where ctid = any(array(
      select ctid from work_lanes where claim is not null
        and (leased_until < app_now() or claim >> 32 > 0 and claim >> 32 not in (select gateway from alive))
      for update skip locked
    ))`,
};

const renewStatement: NamedStatement = {
  name: "work-renew",
  text: `update work_lanes set leased_until = app_now() + $2 * interval '1 millisecond'
    where claim = any($1) returning claim`,
};

const dueStatement: NamedStatement = {
  name: "work-due-next",
  text: `select id, data, attempts, due_at, case when attempts = 0 then order_key end as order_key from work_jobs
    where kind = $1 and lane = $2 and dead_at is null and due_at <= $3 and id <> all($4)
      and case when attempts > 0 then $5 else order_key is null or order_key <> all($6) end
    order by due_at, id limit $7`,
};

const doneStatement: NamedStatement = {
  name: "work-done-once",
  text: `with own as (
      update work_lanes set failures = 0 where kind = $2 and lane = $3 and failures > 0
    )
    delete from work_jobs where id = $1 returning 1`,
};

const failedStatement: NamedStatement = {
  name: "work-failed-once",
  text: `with own as (
      update work_lanes set failures = failures + $8 where kind = $2 and lane = $3 and claim = $4 returning 1
    )
    update work_jobs set attempts = attempts + 1, complaint = $5, due_at = coalesce($6, due_at), dead_at = $7
    where id = $1 and exists (select from own) returning 1`,
};

const dropStatement: NamedStatement = {
  name: "work-drop",
  text: `delete from work_jobs where id in (
      select id from work_jobs where kind = $1 and lane = $2 and dead_at is null order by due_at, id limit $3
      for update skip locked
    ) returning data`,
};

const releaseStatement: NamedStatement = {
  name: "work-release",
  text: `select release_lane($1, $2, $3, $4) as due_at, ${commitAsynchronously}`,
};

// By lanes: jobs are found by their lane alone.
const oldestStatement: NamedStatement = {
  name: "work-oldest",
  text: `select kind, (
        select min((select min(due_at) from work_jobs as jobs where kind = lanes.kind and lane = lanes.lane and dead_at is null))
        from work_lanes as lanes where lanes.kind = kinds.kind and lanes.due_at <= $2
      ) as due_at,
      (select count(*) from work_jobs where work_jobs.kind = kinds.kind and dead_at is not null)::integer as dead
    from unnest($1::text[]) as kinds (kind)`,
};

const sweepStatement: NamedStatement = {
  name: "work-sweep",
  text: `delete from work_jobs where id in (
      select id from work_jobs where kind = $1 and dead_at < $2::timestamptz - interval '30 days' limit $3
    ) returning 1`,
};

/** Finds which of some lanes are there: all that have jobs are. */
export async function findLanes(db: Queryable, kind: string, lanes: readonly string[]): Promise<string[]> {
  return (await db.named<{ lane: string }>(findStatement, [kind, lanes])).map(({ lane }) => lane);
}

/** What a claim says of itself, whichever lanes it is for. */
interface ClaimTerms {
  readonly kind: string;
  readonly now: Date;
  /** Number of the gateway's lock, or 0 while the gateway does not hold its lock. */
  readonly gateway: number;
  readonly leaseMs: number;
}

/** What is to be claimed of all that is due: so many lanes at most of each sort. */
export interface Claim extends ClaimTerms {
  /** How many lanes run already, by whether they fail and their owner, with a space between. */
  readonly busy: Readonly<Record<string, number>>;
  readonly failing: number;
  /** Of lanes that do not fail: places for all, and those of them that may be taken by owners that have one. */
  readonly sound: number;
  readonly second: number;
}

/** A lane, and beside it the columns of its first job: all null when it has none. */
type ClaimRow = Omit<ClaimedLane, "first"> & (StoredJob | { readonly id: null }) & { readonly waiting: number };

const toClaimed = (row: ClaimRow): ClaimedLane => ({ ...row, first: row.id === null ? undefined : row });

/** Claims lanes that are due; says also how many there were to choose from. */
export async function claimLanes(db: Queryable, claim: Claim): Promise<{ lanes: ClaimedLane[]; waiting: number }> {
  const { kind, now, busy, failing, sound, second, gateway, leaseMs } = claim;
  const rows = await db.named<ClaimRow>(claimStatement, [
    ...[kind, now, JSON.stringify(busy), failing, sound, second, gateway, leaseMs],
  ]);
  return { lanes: rows.map(toClaimed), waiting: rows[0]?.waiting ?? 0 };
}

/** Claims lanes by their names, if they are due and do not fail, so many at most. */
export async function claimNamedLanes(
  db: Queryable,
  terms: ClaimTerms & { readonly lanes: readonly string[]; readonly limit: number },
): Promise<ClaimedLane[]> {
  const { kind, now, lanes, limit, gateway, leaseMs } = terms;
  return (await db.named<ClaimRow>(claimNamedStatement, [kind, now, lanes, limit, gateway, leaseMs])).map(toClaimed);
}

/** Releases lanes whose leases have expired or whose gateways hold their locks no longer. */
export async function freeLanes(db: Queryable): Promise<void> {
  await db.named(freeStatement, []);
}

/** Renews leases; gives the claims that still stand. */
export async function renewLeases(db: Queryable, claims: readonly string[], leaseMs: number): Promise<string[]> {
  return (await db.named<{ claim: string }>(renewStatement, [claims, leaseMs])).map(({ claim }) => claim);
}

/** What of a lane may begin now. */
export interface Beginnable {
  readonly now: Date;
  /** Jobs that are known already. */
  readonly known: readonly string[];
  /** Whether jobs that have failed before may. */
  readonly retries: boolean;
  /** Order keys whose next job may not. */
  readonly busy: readonly string[];
  readonly limit: number;
}

/** Reads the first jobs of a lane that are due and may begin. */
export function readDueJobs(db: Queryable, { kind, lane }: ClaimedLane, which: Beginnable): Promise<StoredJob[]> {
  const { now, known, retries, busy, limit } = which;
  return db.named<StoredJob & object>(dueStatement, [kind, lane, now, known, retries, busy, limit]);
}

/**
 * Deletes a job that is done, also when its lane has another holder meanwhile: that spares it another run. Says whether it
 * was still there.
 */
export async function deleteDoneJob(db: Queryable, { kind, lane }: ClaimedLane, id: string): Promise<boolean> {
  return (await db.named(doneStatement, [id, kind, lane])).length > 0;
}

/** Deletes jobs of a lane that are still to be done, so many at most, and gives their data. */
export async function deleteJobs(db: Queryable, kind: string, lane: string, limit: number): Promise<unknown[]> {
  return (await db.named<{ data: unknown }>(dropStatement, [kind, lane, limit])).map(({ data }) => data);
}

/** What became of an attempt that has failed: when the next one is due, or since when there is none. */
export interface FailedAttempt {
  readonly complaint: string;
  readonly dueAt?: Date;
  readonly deadAt?: Date;
  /** Whether the lane is to blame. */
  readonly countsForLane: boolean;
}

/** Notes a failure, as long as the lane is this claim's and has the job; says whether it is. */
export async function noteFailure(
  db: Queryable,
  lane: ClaimedLane,
  id: string,
  { complaint, dueAt, deadAt, countsForLane }: FailedAttempt,
): Promise<boolean> {
  const next = [dueAt ?? null, deadAt ?? null];
  const values = [id, lane.kind, lane.lane, lane.claim, complaint, ...next, countsForLane ? 1 : 0];
  return (await db.named(failedStatement, values)).length > 0;
}

/** Lets go of a lane; gives when its first job is due, null when it has none. */
export async function releaseLane(db: Queryable, { kind, lane, claim }: ClaimedLane, now: Date): Promise<Date | null> {
  const [row] = await db.named<{ due_at: Date | null }>(releaseStatement, [kind, lane, claim, now]);
  return row?.due_at ?? null;
}

/** Reads of each kind when the oldest job of the lanes that are due was or is due, and how many dead letters it has. */
export function readBacklogs(db: Queryable, kinds: readonly string[], now: Date) {
  return db.named<{ kind: string; due_at: Date | null; dead: number }>(oldestStatement, [kinds, now]);
}

/** Deletes dead letters that were kept long enough, so many at most; says how many those were. */
export async function deleteOldLetters(db: Queryable, kind: string, now: Date, limit: number): Promise<number> {
  return (await db.named(sweepStatement, [kind, now, limit])).length;
}

const unclaimedStatement: NamedStatement = {
  name: "work-unclaimed",
  text: `select greatest(due_at, case when claim is not null then leased_until end) as since from work_lanes as lanes
    where kind = $1 and due_at <= $2 and failures = 0 and (claim is null or leased_until < app_now())
      and not exists (
        select from work_lanes as held
        where held.kind = $1 and held.owner = lanes.owner and held.claim is not null and held.leased_until >= app_now()
      )
    order by since limit 1`,
};

/**
 * Finds since when work is due that nobody has claimed, or whose gateway has died over it: in lanes that did not fail lately,
 * of owners who have none under way.
 */
export async function findOldestUnclaimed(db: Queryable, kind: string, now: Date): Promise<Date | undefined> {
  const [row] = await db.named<{ since: Date }>(unclaimedStatement, [kind, now]);
  return row?.since;
}
