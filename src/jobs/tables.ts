import type { Generated, JSONColumnType } from "kysely";
import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** What is claimed: the jobs of one key. A lane is here as long as it has jobs, or is known to fail. */
interface WorkLanesTable {
  kind: string;
  lane: string;
  /** Whose it is: places are shared out between owners. A lane of nobody is its own. */
  owner: string | null;
  /** When it may be claimed next: no later than its first job is due. By the app's clock. */
  due_at: Date;
  /** When its latest job came. */
  latest_at: Date;
  /** Failures since the last success. */
  failures: Generated<number>;
  /** Number of the claim of the gateway that has it. */
  claim: string | null;
  /** Until when, by PostgreSQL's clock: then another may claim it. */
  leased_until: Date | null;
}

/** Jobs to be done, and those that nobody tries any more. */
interface WorkJobsTable {
  id: Generated<string>;
  kind: string;
  lane: string;
  data: JSONColumnType<object>;
  /** Jobs of a lane with the same key have their first attempts one after the other. */
  order_key: string | null;
  due_at: Date;
  attempts: Generated<number>;
  /** Why the last attempt has failed. */
  complaint: string | null;
  created_at: Stamp;
  /** Since when it is a dead letter. */
  dead_at: Date | null;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    work_lanes: WorkLanesTable;
    work_jobs: WorkJobsTable;
  }
}

export const workMigrations: Migrations = {
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
     * Lets go of a lane, and says when it is due again. Who adds a job takes the lock of its lane first and keeps it until the
     * commit, so a look that begins with the lock taken misses none. One statement would look as of before it had the lock.
     * A lane with jobs that are due goes to the end of the queue. One without jobs goes away, unless it has just failed.
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
    // The sequence of claims stays: gateways of the release before draw from it.
    // A claim looks at what is free alone, however much is held.
    "create index work_lanes_free on work_lanes (kind, due_at) where claim is null",
    "create index work_lanes_held on work_lanes (claim) where claim is not null",
    "drop index work_lanes_due",
    // Jobs are found by their lane alone: the planner would look for those of a lane here, among all others that are due.
    "drop index work_jobs_due",
  ],
};
