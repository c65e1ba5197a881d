import type { BigInteger, Migrations } from "../../platform/postgres/schema.ts";

/**
 * Logs of ended sessions, compressed and sealed for their account. Partitioned by the day of storing in UTC, so that
 * expired logs are dropped without a scan. The partitions are created while the service runs.
 */
interface SessionLogsTable {
  session_id: string;
  account_id: string;
  /** `YYYY-MM-DD`. */
  stored_on: string;
  /** Size of `data` in bytes. */
  bytes: number;
  data: Buffer;
}

/** Bytes that the logs of an account take, by day, so that finding accounts beyond the limit needs no scan of logs. */
interface SessionLogUsageTable {
  account_id: string;
  stored_on: string;
  bytes: BigInteger;
}

export const sessionLogMigrations: Migrations = {
  "131-session-logs": [
    "alter table accounts add column session_logs text",
    "alter table sessions add column logs text",
    "alter table sessions add column made_by text",
    `create table session_logs (
      session_id text not null,
      account_id text not null,
      stored_on date not null,
      bytes integer not null,
      data bytea not null,
      primary key (session_id, stored_on)
    ) partition by range (stored_on)`,
    // Compressing sealed data again would only cost CPU.
    "alter table session_logs alter column data set storage external",
    "create index session_logs_account on session_logs (account_id, stored_on, session_id)",
    `create table session_log_usage (
      account_id text not null,
      stored_on date not null,
      bytes bigint not null,
      primary key (account_id, stored_on)
    )`,
  ],
};

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    session_logs: SessionLogsTable;
    session_log_usage: SessionLogUsageTable;
  }
}
