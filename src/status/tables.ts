import type { Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations } from "../platform/postgres/schema.ts";
import type { ComponentName, Health } from "./components.ts";
import type { Facts, States } from "./judgement.ts";

/** What each gateway has seen at its last sampling. */
interface StatusGatewaysTable {
  id: string;
  sampled_at: Date;
  facts: JSONColumnType<Facts>;
}

/** One row: what all samplings have come to. */
interface StatusBoardTable {
  id: Generated<boolean>;
  /** The time of the last sampling that was judged; null before the first. */
  judged_at: Date | null;
  /** Counts what followers see change. */
  version: BigInteger;
  states: JSONColumnType<States>;
}

/** For how long which component was how. Those that go on have no end. */
interface StatusSpansTable {
  id: Generated<string>;
  component: ComponentName;
  health: Health;
  started_at: Date;
  ended_at: Date | null;
}

/** Who or what has opened an incident: the samplings, the operator, or the operator ahead of time. */
export type IncidentOrigin = "automatic" | "operator" | "maintenance";

/** What was, is or will be wrong. */
interface StatusIncidentsTable {
  id: string;
  origin: IncidentOrigin;
  title: string;
  health: Health;
  components: ComponentName[];
  started_at: Date;
  /** When it ended; of maintenance, when it will. */
  resolved_at: Date | null;
  /** When something of it changed that subscribers are told of, and when they were told last. */
  changed_at: Date;
  told_at: Generated<Date | null>;
}

/** What was said about incidents. */
interface StatusUpdatesTable {
  id: Generated<string>;
  incident_id: string;
  text: string;
  created_at: Date;
}

/** Who gets mails of incidents, and who has asked for it, or had enough, within the last days. */
interface StatusSubscribersTable {
  id: string;
  /** The canonical address. */
  email: string;
  /** Of the token of the last mail with a link to confirm, which may be followed once. */
  confirm_hash: Buffer | null;
  confirm_until: Date | null;
  confirm_used: Generated<boolean>;
  /** When mails with a link to confirm were sent: those of the last day. */
  asked: Date[];
  /** Of the token that ends it, which stays the same. Sealed, since it is written into each mail. */
  end_hash: Buffer;
  end_token: Buffer;
  confirmed_at: Date | null;
  ended_at: Date | null;
}

/** Mails about one change of an incident, on their way to all subscribers. */
interface StatusMailingsTable {
  id: Generated<string>;
  subject: string;
  lines: string[];
  /** The last subscriber who was written to. */
  after_id: Generated<string>;
  created_at: Date;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    status_gateways: StatusGatewaysTable;
    status_board: StatusBoardTable;
    status_spans: StatusSpansTable;
    status_incidents: StatusIncidentsTable;
    status_updates: StatusUpdatesTable;
    status_subscribers: StatusSubscribersTable;
    status_mailings: StatusMailingsTable;
  }
}

export const statusMigrations: Migrations = {
  "084-status": [
    "create table status_gateways (id text primary key, sampled_at timestamptz not null, facts jsonb not null)",
    `create table status_board (
      id boolean primary key default true check (id),
      judged_at timestamptz,
      version bigint not null default 0,
      states jsonb not null default '{}'
    )`,
    "insert into status_board default values",
    `create table status_spans (
      id bigint generated always as identity primary key,
      component text not null,
      health text not null,
      started_at timestamptz not null,
      ended_at timestamptz
    )`,
    "create unique index status_spans_open on status_spans (component) where ended_at is null",
    "create index status_spans_end on status_spans (ended_at)",
    `create table status_incidents (
      id text primary key,
      origin text not null,
      title text not null,
      health text not null,
      components text[] not null,
      started_at timestamptz not null,
      resolved_at timestamptz,
      changed_at timestamptz not null,
      told_at timestamptz
    )`,
    "create unique index status_incidents_automatic on status_incidents (origin) where origin = 'automatic' and resolved_at is null",
    "create index status_incidents_end on status_incidents (resolved_at)",
    "create index status_incidents_untold on status_incidents (changed_at) where told_at is null or told_at < changed_at",
    `create table status_updates (
      id bigint generated always as identity primary key,
      incident_id text not null references status_incidents (id) on delete cascade,
      text text not null,
      created_at timestamptz not null
    )`,
    "create index status_updates_incident on status_updates (incident_id, id)",
    `create table status_subscribers (
      id text primary key,
      email text not null unique,
      confirm_hash bytea unique,
      confirm_until timestamptz,
      confirm_used boolean not null default false,
      asked timestamptz[] not null,
      end_hash bytea not null unique,
      end_token bytea not null,
      confirmed_at timestamptz,
      ended_at timestamptz
    )`,
    "create index status_subscribers_told on status_subscribers (id) where confirmed_at is not null and ended_at is null",
    `create table status_mailings (
      id bigint generated always as identity primary key,
      subject text not null,
      lines text[] not null,
      after_id text not null default '',
      created_at timestamptz not null
    )`,
  ],
};
