import type { Generated } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Processes that run browsers. */
export interface WorkersTable {
  id: string;
  secret_hash: Buffer;
  address: string;
  runtimes: string[];
  slots: number;
  /** `namespace`, or `flags` for browser flags only. */
  isolation: string;
  /** Whether browsers run without Chromium's sandbox. */
  unsandboxed: Generated<boolean>;
  boot_id: string;
  registered_at: Stamp;
}

/**
 * Written by heartbeats. Separate from `workers`, whose rows placements lock: a gateway stopped in such a transaction
 * must not block lease renewals. Gateways only read this table.
 */
export interface WorkerLeasesTable {
  worker_id: string;
  incarnation: BigInteger;
  draining: Generated<boolean>;
  /** Pressure that closes the worker to new sessions (`memory`, `memory_stall`, `cpu`), or null. */
  closed_by: string | null;
  /** Whether the last prelaunched browser failed to start. If so, placement avoids the worker. */
  launches_fail: Generated<boolean>;
  lease_until: Stamp;
  /** Time of the last accepted heartbeat. */
  heard_at: Date | null;
  /** Time at which the lease was found expired and the sessions were ended. */
  lost_at: Date | null;
}

/** Single row with the time of the last sweep by any gateway. */
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
  // Rows of lost workers stay, because sessions reference them. The index lets placement skip those rows.
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
    // Rows of lost workers stay, because sessions reference them. The index lets placement skip those rows.
    "create index worker_leases_present on worker_leases (worker_id) where lost_at is null",
    `alter table workers drop column incarnation, drop column draining, drop column closed_by,
      drop column launches_fail, drop column lease_until, drop column heard_at, drop column lost_at`,
  ],
};
