import type { Generated, JSONColumnType } from "kysely";
import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Queues of jobs. A gateway claims a whole queue. A row exists while the queue has jobs or has failed recently. */
interface JobQueuesTable {
  kind: string;
  queue: string;
  /** Slots are shared fairly between owners. If null, the queue is its own owner. */
  owner: string | null;
  /** Time from which the queue may be claimed, by the gateways' clocks. */
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
  "010-jobs": [
    `create table job_queues (
      kind text not null,
      queue text not null,
      owner text,
      due_at timestamptz not null,
      latest_at timestamptz not null,
      failures integer not null default 0,
      claim bigint,
      leased_until timestamptz,
      primary key (kind, queue)
    )`,
    // Indexes unclaimed queues only, so that claims do not scan claimed queues.
    "create index job_queues_free on job_queues (kind, due_at) where claim is null",
    "create index job_queues_held on job_queues (claim) where claim is not null",

    `create table jobs (
      id bigint generated always as identity primary key,
      kind text not null,
      queue text not null,
      data jsonb not null,
      order_key text,
      due_at timestamptz not null,
      attempts integer not null default 0,
      complaint text,
      created_at timestamptz not null default app_now(),
      dead_at timestamptz
    )`,
    // Jobs are only looked up by queue. With an index by due time, the planner would scan all due jobs.
    "create index jobs_queue on jobs (kind, queue, due_at, id) where dead_at is null",
    "create index jobs_dead on jobs (kind, dead_at) where dead_at is not null",

    /*
     * Releases a queue and returns the due time of its first job. Returns null if the queue is empty or the claim was
     * lost. Adding a job locks its queue until the commit, so the select after the lock sees every job. A single
     * statement would use a snapshot from before the lock. A queue with due jobs moves to the end. An empty queue is
     * deleted, unless it failed recently.
     */
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
