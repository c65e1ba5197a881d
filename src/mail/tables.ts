import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Mails from the transaction of their cause until they are sent. */
interface MailsTable {
  id: string;
  /** Whose preferences it obeys. */
  user_id: string | null;
  kind: string;
  /** The mail as JSON, sealed: links in it are as good as passwords. */
  content: Buffer;
  created_at: Stamp;
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
      created_at timestamptz not null default now()
    )`,
    "create index mails_created on mails (created_at)",
  ],
};
