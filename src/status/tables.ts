import type { Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations } from "../platform/postgres/schema.ts";
import type { ComponentName, Health } from "./components.ts";
import type { Facts, States } from "./judgement.ts";

/** Latest facts of each gateway. */
interface StatusGatewaysTable {
  id: string;
  sampled_at: Date;
  facts: JSONColumnType<Facts>;
}

/** Single row with the result of all samples. */
interface StatusBoardTable {
  id: Generated<boolean>;
  /** Time of the last judged sample, or null before the first. */
  judged_at: Date | null;
  /** Incremented at each visible change. */
  version: BigInteger;
  states: JSONColumnType<States>;
}

/** Periods of constant health per component. Open periods have no end. */
interface StatusSpansTable {
  id: Generated<string>;
  component: ComponentName;
  health: Health;
  started_at: Date;
  ended_at: Date | null;
}

/** Origin of an incident: samples, the operator, or maintenance planned by the operator. */
export type IncidentOrigin = "automatic" | "operator" | "maintenance";

/** Past, current and planned incidents. */
interface StatusIncidentsTable {
  id: string;
  origin: IncidentOrigin;
  title: string;
  health: Health;
  components: ComponentName[];
  started_at: Date;
  /** End. For maintenance, the planned end. */
  resolved_at: Date | null;
  /** Time of the last change to report to subscribers. */
  changed_at: Date;
  /** Time of the last e-mail. */
  told_at: Generated<Date | null>;
}

interface StatusUpdatesTable {
  id: Generated<string>;
  incident_id: string;
  text: string;
  created_at: Date;
}

/** Subscribers to e-mails about incidents, including pending and recently ended subscriptions. */
interface StatusSubscribersTable {
  id: string;
  /** Canonical address. */
  email: string;
  /** Hash of the token in the last confirmation e-mail. The token works once. */
  confirm_hash: Buffer | null;
  confirm_until: Date | null;
  confirm_used: Generated<boolean>;
  /** Times of the confirmation e-mails of the last day. */
  asked: Date[];
  /** Hash of the permanent unsubscribe token. */
  end_hash: Buffer;
  /** Sealed unsubscribe token, which each e-mail contains. */
  end_token: Buffer;
  confirmed_at: Date | null;
  ended_at: Date | null;
}

/** E-mails about one change of an incident that are being sent. */
interface StatusMailingsTable {
  id: Generated<string>;
  subject: string;
  lines: string[];
  /** Identifier of the last subscriber who was e-mailed; empty before the first batch. */
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
  "025-status": [
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
