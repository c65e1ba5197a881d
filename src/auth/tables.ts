import type { Generated } from "kysely";
import type { Migrations } from "../platform/postgres/schema.ts";

export type MailTokenKind =
  | "verify-email"
  | "magic-link"
  | "password-reset"
  | "email-change"
  | "undo-email-change"
  | "account-restore"
  | "keys";

/** Tokens of links in e-mails. Only the hash is stored. */
interface MailTokensTable {
  hash: Buffer;
  kind: MailTokenKind;
  user_id: string;
  /** Address that the e-mail was sent to. Use of the token proves access to that mailbox. */
  email: string;
  expires_at: Date;
  /** The login that requested the link, if any. */
  login_id: Generated<string | null>;
  /** The account that the link concerns, if any. */
  account_id: Generated<string | null>;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    mail_tokens: MailTokensTable;
  }
}

export const authMigrations: Migrations = {
  "014-mail-tokens": [
    `create table mail_tokens (
      hash bytea primary key,
      kind text not null,
      user_id text not null references users (id) on delete cascade,
      email text not null,
      expires_at timestamptz not null,
      login_id text,
      account_id text
    )`,
    "create index mail_tokens_user on mail_tokens (user_id)",
    "create index mail_tokens_age on mail_tokens (expires_at)",
  ],
};
