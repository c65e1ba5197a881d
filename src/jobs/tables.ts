import type { Generated, JSONColumnType } from "kysely";
import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Jobs with the same key, which are claimed together. A row exists while the queue has jobs or is failing. */
interface JobQueuesTable {
  kind: string;
  queue: string;
  /** Slots are shared fairly between owners. If null, the queue is its own owner. */
  owner: string | null;
  /** Time from which the queue may be claimed, at the latest when its first job is due. By the app's clock. */
  due_at: Date;
  /** Due time of the job added last. */
  latest_at: Date;
  /** Consecutive failures. */
  failures: Generated<number>;
  claim: string | null;
  /** End of the lease by PostgreSQL's clock. Another gateway may claim the queue afterwards. */
  leased_until: Date | null;
}

/** Pending jobs and dead letters. */
interface JobsTable {
  id: Generated<string>;
  kind: string;
  queue: string;
  data: JSONColumnType<object>;
  /** Within a queue, first attempts of jobs with the same key run one after the other. */
  order_key: string | null;
  due_at: Date;
  attempts: Generated<number>;
  complaint: string | null;
  created_at: Stamp;
  /** Time at which the job became a dead letter. */
  dead_at: Date | null;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    job_queues: JobQueuesTable;
    jobs: JobsTable;
  }
}

export const jobMigrations: Migrations = {
  "022-work": [
    `create table work_lanes (
      kind text not null,
      lane text not null,
      due_at timestamptz not null,
      latest_at timestamptz not null,
      failures integer not null default 0,
      claim bigint,
      leased_until timestamptz,
      primary key (kind, lane)
    )`,
    "create index work_lanes_sound on work_lanes (kind, due_at) where failures < 3",
    "create index work_lanes_failing on work_lanes (kind, due_at) where failures >= 3",
    "create sequence work_claims",

    `create table work_jobs (
      id bigint generated always as identity primary key,
      kind text not null,
      lane text not null,
      data jsonb not null,
      due_at timestamptz not null,
      attempts integer not null default 0,
      complaint text,
      created_at timestamptz not null default now(),
      dead_at timestamptz
    )`,
    "create index work_jobs_lane on work_jobs (kind, lane, due_at, id) where dead_at is null",
    "create index work_jobs_due on work_jobs (kind, due_at) where dead_at is null",
    "create index work_jobs_dead on work_jobs (kind, dead_at) where dead_at is not null",

    /*
     * Releases a queue and returns the due time of its first job. Adding a job locks its queue until the commit, so the
     * select after the lock sees every job. A single statement would use a snapshot from before the lock. A queue with
     * due jobs moves to the end. An empty queue is deleted, unless it failed recently.
     */
    `create function release_lane(of_kind text, of_lane text, of_claim bigint, moment timestamptz)
      returns timestamptz language plpgsql as $$
      declare
        first_due timestamptz;
      begin
        perform from work_lanes where kind = of_kind and lane = of_lane and claim = of_claim for update;
        if not found then
          return null;
        end if;
        select min(due_at) into first_due from work_jobs where kind = of_kind and lane = of_lane and dead_at is null;
        delete from work_lanes
          where first_due is null and kind = of_kind and lane = of_lane
            and (failures < 3 or latest_at < moment - interval '1 day');
        update work_lanes
          set claim = null, leased_until = null, due_at = coalesce(greatest(first_due, moment), moment + interval '1 day')
          where kind = of_kind and lane = of_lane;
        return first_due;
      end
    $$`,
  ],
  "050-work-owners": [
    "alter table work_lanes add column owner text",
    "alter table work_jobs add column order_key text",
    "create index work_lanes_due on work_lanes (kind, due_at)",
    "drop index work_lanes_sound",
    "drop index work_lanes_failing",
  ],
  "061-free-lanes": [
    // The sequence of claims stays, because gateways of the previous release use it.
    // Indexes unclaimed queues only, so that claims do not scan held ones.
    "create index work_lanes_free on work_lanes (kind, due_at) where claim is null",
    "create index work_lanes_held on work_lanes (claim) where claim is not null",
    "drop index work_lanes_due",
    // Jobs are only looked up by queue. With this index, the planner would scan all due jobs.
    "drop index work_jobs_due",
  ],
  "101-job-queues": [
    "alter table work_lanes rename to job_queues",
    "alter table job_queues rename column lane to queue",
    "alter index work_lanes_pkey rename to job_queues_pkey",
    "alter index work_lanes_free rename to job_queues_free",
    "alter index work_lanes_held rename to job_queues_held",
    "alter table work_jobs rename to jobs",
    "alter table jobs rename column lane to queue",
    "alter sequence work_jobs_id_seq rename to jobs_id_seq",
    "alter index work_jobs_pkey rename to jobs_pkey",
    "alter index work_jobs_lane rename to jobs_queue",
    "alter index work_jobs_dead rename to jobs_dead",
    "drop function release_lane",
    // See 022-work: the same function with the new names.
    `create function release_queue(of_kind text, of_queue text, of_claim bigint, moment timestamptz)
      returns timestamptz language plpgsql as $$
      declare
        first_due timestamptz;
      begin
        perform from job_queues where kind = of_kind and queue = of_queue and claim = of_claim for update;
        if not found then
          return null;
        end if;
        select min(due_at) into first_due from jobs where kind = of_kind and queue = of_queue and dead_at is null;
        delete from job_queues
          where first_due is null and kind = of_kind and queue = of_queue
            and (failures < 3 or latest_at < moment - interval '1 day');
        update job_queues
          set claim = null, leased_until = null, due_at = coalesce(greatest(first_due, moment), moment + interval '1 day')
          where kind = of_kind and queue = of_queue;
        return first_due;
      end
    $$`,
  ],
};
