import type { Generated } from "kysely";
import type { FileLinkGrant } from "../../kernel/call.ts";
import type { Migrations } from "../../platform/postgres/schema.ts";

/** One-time links to files of sessions. */
interface FileLinksTable {
  id: string;
  session_id: string;
  made_by: string;
  file_name: string;
  method: FileLinkGrant["method"];
  secret_hash: Buffer;
  created_at: Generated<Date>;
  opens_until: Date;
  used_at: Date | null;
  revoked_at: Date | null;
}

export const fileLinkMigrations: Migrations = {
  "122-file-links": [
    `create table file_links (
      id text primary key,
      session_id text not null references sessions (id) on delete cascade,
      made_by text not null,
      file_name text not null,
      method text not null,
      secret_hash bytea not null,
      created_at timestamptz not null default app_now(),
      opens_until timestamptz not null,
      used_at timestamptz,
      revoked_at timestamptz
    )`,
    "create index file_links_session on file_links (session_id)",
    "create index file_links_opens_until on file_links (opens_until)",
  ],
};

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    file_links: FileLinksTable;
  }
}
