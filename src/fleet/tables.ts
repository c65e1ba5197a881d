import type { Generated } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Processes that run browsers. */
export interface WorkersTable {
  id: string;
  secret_hash: Buffer;
  address: string;
  runtimes: string[];
  slots: number;
  /** `namespace`, or `flags` where the operator does without. */
  isolation: string;
  /** Its browsers run without Chromium's sandbox. */
  unsandboxed: Generated<boolean>;
  boot_id: string;
  registered_at: Stamp;
}

/**
 * What heartbeats write, apart from `workers`: placement locks a worker's row there, and a gateway that is stopped in that
 * transaction must not keep a lease from being renewed. Gateways only read this table.
 */
export interface WorkerLeasesTable {
  worker_id: string;
  incarnation: BigInteger;
  draining: Generated<boolean>;
  /** What closes it to new sessions (`memory`, `memory_stall`, `cpu`); null while it is open. */
  closed_by: string | null;
  /** The last browser that it has launched ahead did not come up: placement avoids it. */
  launches_fail: Generated<boolean>;
  lease_until: Stamp;
  /** When its last heartbeat was accepted. */
  heard_at: Date | null;
  /** Its lease was missed and its sessions were ended. */
  lost_at: Date | null;
}

/** One row: when any gateway last looked for missed leases. */
export interface LeaseSweepTable {
  id: Generated<boolean>;
  swept_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    workers: WorkersTable;
    worker_leases: WorkerLeasesTable;
    lease_sweep: LeaseSweepTable;
  }
}

export const fleetMigrations: Migrations = {
  "005-pressure": ["alter table workers add column closed_by text"],
  // The rows of workers that are gone stay, since those of their sessions name them: placement must not read them all.
  "012-present-workers": ["create index workers_present on workers (id) where lost_at is null"],
  "023-worker-heartbeats": ["alter table workers add column heard_at timestamptz"],
  "085-worker-launches": ["alter table workers add column launches_fail boolean not null default false"],
  "097-worker-sandbox": ["alter table workers add column unsandboxed boolean not null default false"],
  "098-worker-leases": [
    `create table worker_leases (
      worker_id text primary key references workers (id) on delete cascade,
      incarnation bigint not null,
      draining boolean not null default false,
      closed_by text,
      launches_fail boolean not null default false,
      lease_until timestamptz not null,
      heard_at timestamptz,
      lost_at timestamptz
    )`,
    `insert into worker_leases
      select id, incarnation, draining, closed_by, launches_fail, lease_until, heard_at, lost_at from workers`,
    // The rows of workers that are gone stay, since those of their sessions name them: placement must not read them all.
    "create index worker_leases_present on worker_leases (worker_id) where lost_at is null",
    `alter table workers drop column incarnation, drop column draining, drop column closed_by,
      drop column launches_fail, drop column lease_until, drop column heard_at, drop column lost_at`,
  ],
};
