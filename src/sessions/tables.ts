import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";
import type { StoredEndedReason, StoredSessionStatus } from "./session-states.ts";

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

export const sessionMigrations: Migrations = {
  "011-session-expiry": [
    `create index sessions_expiry on sessions (expires_at) where status in ('provisioning', 'live', 'paused')`,
  ],
};

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    sessions: SessionsTable;
  }
}
