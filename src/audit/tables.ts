import type { JsonObject } from "@bufbuild/protobuf";
import type { JSONColumnType } from "kysely";
import type { Actor } from "../kernel/call.ts";
import type { Migrations } from "../platform/postgres/schema.ts";

/** Audited actions. The time is part of the identifier (see `timeOfId`). */
export interface AuditEntriesTable {
  id: string;
  account_id: string;
  action: string;
  actor_kind: Actor["kind"];
  /** Identifier of the user or key; null for the operator and the service. */
  actor_id: string | null;
  /** Name at the time of the action. */
  actor_name: string | null;
  subject: string;
  data: JSONColumnType<JsonObject, string, never>;
  request_id: string | null;
  client_address: string | null;
  user_agent: string | null;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    audit_entries: AuditEntriesTable;
  }
}

export const auditMigrations: Migrations = {
  "011-audit-entries": [
    `create table audit_entries (
      id text primary key,
      account_id text not null references accounts (id),
      action text not null,
      actor_kind text not null check (actor_kind in ('user', 'key', 'operator', 'service')),
      actor_id text,
      actor_name text,
      subject text not null,
      data jsonb not null,
      request_id text,
      client_address text,
      user_agent text
    )`,
    // One index for the whole log and one for each filter, because filters often look for rare entries.
    "create index audit_entries_account on audit_entries (account_id, id)",
    "create index audit_entries_action on audit_entries (account_id, action, id)",
    "create index audit_entries_actor on audit_entries (account_id, actor_id, id)",
    "create index audit_entries_subject on audit_entries (account_id, subject, id)",
  ],
};
