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

/** Which mails users want who have said so. */
interface MailPreferencesTable {
  user_id: string;
  product_updates: boolean;
  usage_alerts: boolean;
  webhook_failures: boolean;
  team_activity: boolean;
  updated_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    mails: MailsTable;
    mail_preferences: MailPreferencesTable;
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
  "036-mail-preferences": [
    `create table mail_preferences (
      user_id text primary key references users (id) on delete cascade,
      product_updates boolean not null,
      usage_alerts boolean not null,
      webhook_failures boolean not null,
      team_activity boolean not null,
      updated_at timestamptz not null
    )`,
  ],
};
