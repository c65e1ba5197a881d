import type { ColumnType, Generated, JSONColumnType } from "kysely";

/** A time that PostgreSQL sets by itself unless it is given. */
type Stamp = ColumnType<Date, Date | undefined, Date>;

/** A number of 64 bits: pg reads it as text. */
type BigInteger = ColumnType<string, bigint | number | string, bigint | number | string>;

/** Where a session is in its life, as its row says it. */
export type StoredSessionStatus = "provisioning" | "live" | "paused" | "destroyed" | "errored";

/** Why a session ended, as its row says it. */
export type StoredEndedReason =
  | "destroyed"
  | "expired"
  | "idle"
  | "quota"
  | "crashed"
  | "worker_lost"
  | "failed_to_start";

/** Whom everything belongs to. */
export interface AccountsTable {
  id: string;
  name: string;
  tier: string;
  /** The account that embedded mode makes for itself. */
  developer: Generated<boolean>;
  created_at: Stamp;
}

/** Keys of the API; of their secrets only the hash. */
export interface ApiKeysTable {
  id: string;
  account_id: string;
  name: string;
  secret_hash: Buffer;
  scopes: string[];
  created_at: Stamp;
  expires_at: Date | null;
  revoked_at: Date | null;
}

/** Browser sessions, the ended ones included. */
export interface SessionsTable {
  id: string;
  account_id: string;
  status: StoredSessionStatus;
  archetype: string;
  runtime: string;
  profile_id: string | null;
  proxy_server: string | null;
  proxy_username: string | null;
  locale: string | null;
  timezone: string | null;
  viewport_width: number | null;
  viewport_height: number | null;
  viewport_scale: number | null;
  labels: JSONColumnType<Record<string, string>, string, string>;
  idle_timeout_seconds: number;
  created_at: Stamp;
  live_at: Date | null;
  ended_at: Date | null;
  ended_reason: StoredEndedReason | null;
  pause_reason: string | null;
  expires_at: Date;
  /** When a row that is still provisioning is swept. */
  provision_by: Date;
  worker_id: string;
  placement_epoch: BigInteger;
  control_epoch: ColumnType<string, bigint | number | string | undefined, bigint | number | string>;
  /** The worker's slot is taken: from placement until the worker no longer has the session. */
  slot_held: Generated<boolean>;
}

/** Processes that run browsers. */
export interface WorkersTable {
  id: string;
  secret_hash: Buffer;
  address: string;
  runtimes: string[];
  slots: number;
  isolation: string;
  boot_id: string;
  incarnation: BigInteger;
  draining: Generated<boolean>;
  /** What closes it to new sessions (`memory`, `memory_stall`, `cpu`); null while it is open. */
  closed_by: string | null;
  lease_until: Stamp;
  /** Its lease was missed and its sessions were ended. */
  lost_at: Date | null;
  registered_at: Stamp;
}

/** What happened, in the transaction in which it happened. */
export interface EventsTable {
  position: Generated<string>;
  xid: Generated<string>;
  id: string;
  account_id: string;
  type: string;
  subject: string;
  data: JSONColumnType<Record<string, unknown>, string, never>;
  created_at: Stamp;
  /** The key of a worker's event: with the subject, by which it is applied once. */
  placement_epoch: BigInteger | null;
  incarnation: BigInteger | null;
  sequence: BigInteger | null;
}

/** Answers that a repeated Idempotency-Key gets again. */
export interface IdempotencyKeysTable {
  account_id: string;
  key: string;
  /** SHA-256 of method, path and body. */
  request_hash: Buffer;
  /** The answer's message in binary; with `failure`, null while the first request runs. */
  answer: Buffer | null;
  /** JSON of a failure that is kept. */
  failure: string | null;
  created_at: Stamp;
}

/** Profiles; what they hold is in their store. */
export interface ProfilesTable {
  id: string;
  account_id: string;
  name: string;
  description: string | null;
  labels: JSONColumnType<Record<string, string>, string, string>;
  engine: string | null;
  /** Counts the saves: a save is taken only while this is the version that its session restored. */
  version: ColumnType<string, undefined, string>;
  /** The store that the version is; null before the first save. */
  store_id: string | null;
  size_bytes: ColumnType<string, undefined, number>;
  saved_at: Date | null;
  created_at: Stamp;
  updated_at: Stamp;
}

/** What profiles hold: packed, compressed and sealed. One that no profile points to is of a save that was interrupted. */
export interface ProfileStoresTable {
  id: string;
  profile_id: string;
  /** The key of its chunks, sealed. */
  data_key: Buffer;
  created_at: Generated<Date>;
}

/** The parts of a store, in their order. */
export interface ProfileChunksTable {
  store_id: string;
  index: number;
  data: Buffer;
}

/** Sessions that were launched with a profile, until their save is taken or has failed. */
export interface ProfileUsesTable {
  session_id: string;
  profile_id: string;
  account_id: string;
  /** The version that the session restored. */
  version: BigInteger;
  /** Until when no other session gets the profile; null while the session runs. */
  held_until: Date | null;
  /** When the save has failed if it has not come; null while the session runs. */
  due_at: Date | null;
}

/** One row: when any gateway last looked for missed leases. */
export interface LeaseSweepTable {
  id: Generated<boolean>;
  swept_at: Date;
}

/** The tables as the migrations leave them. */
export interface Schema {
  accounts: AccountsTable;
  api_keys: ApiKeysTable;
  sessions: SessionsTable;
  workers: WorkersTable;
  events: EventsTable;
  idempotency_keys: IdempotencyKeysTable;
  lease_sweep: LeaseSweepTable;
  profiles: ProfilesTable;
  profile_stores: ProfileStoresTable;
  profile_chunks: ProfileChunksTable;
  profile_uses: ProfileUsesTable;
}
