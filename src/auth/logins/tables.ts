import type { Migrations } from "../../platform/postgres/schema.ts";

/** Logins. Each login is a chain of token pairs, of which only the last can be refreshed. */
interface LoginsTable {
  id: string;
  user_id: string;
  created_at: Date;
  last_used_at: Date;
  /** Upper bound of the lifetime, however often the login is refreshed. */
  ends_at: Date;
  ended_at: Date | null;
  client_address: string;
  user_agent: string;
}

/** Access and refresh token of a login. Only hashes of the secrets are stored. */
interface LoginTokensTable {
  id: string;
  login_id: string;
  /** Account of the pair; a refresh may choose another account. */
  account_id: string;
  access_hash: Buffer;
  refresh_hash: Buffer;
  access_expires_at: Date;
  refresh_expires_at: Date;
  stepped_up_at: Date | null;
  /** When the refresh token was used. */
  spent_at: Date | null;
  /** The pair that replaced this pair when the refresh token was used. */
  successor_id: string | null;
  /** Together with the spent refresh token, recreates the secrets of the successor. */
  seed: Buffer | null;
}

/** Networks and programs from which a user has logged in. */
interface DevicesTable {
  user_id: string;
  network: string;
  family: string;
  last_login_at: Date;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    logins: LoginsTable;
    login_tokens: LoginTokensTable;
    devices: DevicesTable;
  }
}

export const loginMigrations: Migrations = {
  "013-logins": [
    `create table logins (
    id text primary key,
    user_id text not null references users (id) on delete cascade,
    created_at timestamptz not null,
    last_used_at timestamptz not null,
    ends_at timestamptz not null,
    ended_at timestamptz,
    client_address text not null,
    user_agent text not null
  )`,
    "create index logins_user on logins (user_id, id desc)",
    "create index logins_age on logins (last_used_at)",

    `create table login_tokens (
    id text primary key,
    login_id text not null references logins (id) on delete cascade,
    account_id text not null references accounts (id),
    access_hash bytea not null,
    refresh_hash bytea not null,
    access_expires_at timestamptz not null,
    refresh_expires_at timestamptz not null,
    stepped_up_at timestamptz,
    spent_at timestamptz,
    successor_id text,
    seed bytea
  )`,
    "create index login_tokens_login on login_tokens (login_id)",
    "create index login_tokens_age on login_tokens (refresh_expires_at)",

    `create table devices (
    user_id text not null references users (id) on delete cascade,
    network text not null,
    family text not null,
    last_login_at timestamptz not null,
    primary key (user_id, network, family)
  )`,
  ],
};
