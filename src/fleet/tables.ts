import type { Generated } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Processes that run browsers. */
export interface WorkersTable {
  id: string;
  secret_hash: Buffer;
  address: string;
  runtimes: string[];
  slots: number;
  /** Group of equal workers that an autoscaler resizes. */
  pool: Generated<string>;
  /** `namespace`, or `flags` for browser flags only. */
  isolation: string;
  /** Whether browsers run without Chromium's sandbox. */
  unsandboxed: Generated<boolean>;
  boot_id: string;
  /** Release of the worker, such as `0.2.0`. */
  release: Generated<string>;
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
  /** Time at which the lease was found expired and the sessions were ended, or at which the worker left. */
  lost_at: Date | null;
  /** Incarnation that an operator asked to drain. A restarted worker, a later incarnation, accepts sessions again. */
  drain_incarnation: Generated<BigInteger | null>;
  /** Whether `lost_at` is the time of an orderly exit. */
  has_left: Generated<boolean>;
}

/** Single row with the time of the last sweep by any process. */
export interface LeaseSweepTable {
  id: Generated<boolean>;
  swept_at: Date;
}

/** Creates and fetches that wait for a worker with a free slot. */
export interface CapacityWaitsTable {
  /** Id of the session or fetch. */
  id: string;
  runtime: string;
  /** Renewed while the session or fetch waits. */
  waits_until: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    workers: WorkersTable;
    worker_leases: WorkerLeasesTable;
    lease_sweep: LeaseSweepTable;
    capacity_waits: CapacityWaitsTable;
  }
}

export const fleetMigrations: Migrations = {
  "005-fleet": [
    `create table workers (
      id text primary key,
      secret_hash bytea not null,
      address text not null,
      runtimes text[] not null,
      slots integer not null,
      isolation text not null,
      unsandboxed boolean not null default false,
      boot_id text not null unique,
      release text not null default '',
      registered_at timestamptz not null default app_now()
    )`,
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
    // Rows of lost workers stay, because sessions reference them. The index lets placement skip those rows.
    "create index worker_leases_present on worker_leases (worker_id) where lost_at is null",
    "create table lease_sweep (id boolean primary key default true check (id), swept_at timestamptz not null)",
    // A time in the distant past makes the first sweep renew every lease instead of ending sessions.
    "insert into lease_sweep (swept_at) values ('epoch')",
  ],
  "160-worker-drain": ["alter table worker_leases add column drain_incarnation bigint"],
  "161-worker-leave": ["alter table worker_leases add column has_left boolean not null default false"],
  "162-worker-pools": [
    "alter table workers add column pool text not null default 'default'",
    // Unlogged: a create that loses its row continues to wait, and writes the row again within a second.
    `create unlogged table capacity_waits (
      id text primary key,
      runtime text not null,
      waits_until timestamptz not null
    )`,
    "create index capacity_waits_until on capacity_waits (waits_until)",
  ],
};
