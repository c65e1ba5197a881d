import type { ColumnType } from "kysely";
import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Mails that were written, in the transaction of their cause. */
interface MailsTable {
  id: string;
  /** Whose preferences it obeys. */
  user_id: string | null;
  kind: string;
  /** The mail as JSON, sealed: links in it are as good as passwords. */
  content: Buffer;
  created_at: Stamp;
  sent_at: ColumnType<Date | null, never, Date>;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    mails: MailsTable;
  }
}

export const mailMigrations: Migrations = {
  "022-mails": [
    `create table mails (
      id text primary key,
      user_id text,
      kind text not null,
      content bytea not null,
      created_at timestamptz not null default now(),
      sent_at timestamptz
    )`,
    "create index mails_created on mails (created_at)",
  ],
};
