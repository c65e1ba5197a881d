import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** Events, inserted in the transaction of their change. */
interface EventsTable {
  position: Generated<string>;
  /** Sequence number in the log, in the order that consumers read. Null until assigned after the commit. */
  number: ColumnType<string | null, undefined, never>;
  id: string;
  account_id: string;
  type: string;
  subject: string;
  data: JSONColumnType<Record<string, unknown>, string, never>;
  created_at: Stamp;
  /** Key of a worker's event. With the subject, ensures that the event is applied once. */
  placement_epoch: BigInteger | null;
  incarnation: BigInteger | null;
  sequence: BigInteger | null;
}

/** Cursors of consumers that read the whole log. */
interface EventCursorsTable {
  consumer: string;
  /** Number of the last consumed event. */
  number: BigInteger;
  moved_at: Stamp;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    events: EventsTable;
    event_cursors: EventCursorsTable;
  }
}

/** Events are numbered after their commit. Cursors of consumers refer to these numbers. */
export const eventMigrations: Migrations = {
  "008-events": [
    `create table events (
      position bigint generated always as identity primary key,
      number bigint,
      id text not null unique,
      account_id text not null references accounts (id),
      type text not null,
      subject text not null,
      data jsonb not null,
      created_at timestamptz not null default app_now(),
      placement_epoch bigint,
      incarnation bigint,
      sequence bigint
    )`,
    `create unique index events_worker_key on events (subject, placement_epoch, incarnation, sequence)
      where sequence is not null`,
    "create index events_unnumbered on events (position) where number is null",
    "create unique index events_number on events (number) where number is not null",
    "create index events_subject_number on events (subject, number) where number is not null",
    "create index events_account_number on events (account_id, number) where number is not null",
    // For lists of one type, which may be rare among millions of events.
    "create index events_account_type on events (account_id, type, number) where number is not null",
    "create sequence event_numbers",

    /*
     * Numbers up to 1,000 committed events and returns their count. The lock is held until the commit, so the next call
     * starts when these numbers are visible: after a reader has seen a number, no lower number appears. Numbers have
     * the order of positions. Positions have the order of commits if one transaction wrote after the other had ended,
     * as with changes to the same row.
     */
    `create function number_events() returns integer language plpgsql as $$
      declare
        numbered integer;
      begin
        if not exists (select from events where number is null) then
          return 0;
        end if;
        -- "pilo", and 2 for event numbers.
        perform pg_advisory_xact_lock(x'70696c6f'::int, 2);
        update events set number = fresh.number
          from (
            select position, nextval('event_numbers') as number
            from (select position from events where number is null order by position limit 1000) as oldest
          ) as fresh
          where events.position = fresh.position;
        get diagnostics numbered = row_count;
        return numbered;
      end
    $$`,

    `create table event_cursors (
      consumer text primary key,
      number bigint not null,
      moved_at timestamptz not null default app_now()
    )`,
  ],
};
