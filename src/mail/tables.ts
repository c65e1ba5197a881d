import type { Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Outgoing e-mails, inserted in the transaction that causes them, deleted when sent. */
interface MailsTable {
  id: string;
  /** The user whose preferences apply. */
  user_id: string | null;
  kind: string;
  /** The e-mail as JSON, encrypted, because its links are credentials. */
  content: Buffer;
  created_at: Stamp;
}

/** E-mail preferences of users who have set them. */
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
  "016-mails": [
    `create table mails (
      id text primary key,
      user_id text,
      kind text not null,
      content bytea not null,
      created_at timestamptz not null default app_now()
    )`,
    "create index mails_created on mails (created_at)",

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
