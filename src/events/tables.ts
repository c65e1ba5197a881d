import type { ColumnType, Generated, JSONColumnType } from "kysely";
import type { BigInteger, Migrations, Stamp } from "../platform/postgres/schema.ts";

/** What happened, in the transaction in which it happened. */
interface EventsTable {
  position: Generated<string>;
  /** Its place in the log, given after the commit. */
  number: ColumnType<string | null, undefined, never>;
  id: string;
  account_id: string;
  type: string;
  subject: string;
  data: JSONColumnType<Record<string, unknown>, string, never>;
  created_at: Stamp;
  /** The key of a worker's event: with the subject, by which it is applied once. */
  placement_epoch: BigInteger | null;
  incarnation: BigInteger | null;
  sequence: BigInteger | null;
}

/** How far those who read the whole log, and whose place must last, have come. */
interface EventCursorsTable {
  consumer: string;
  /** The last event that it has taken. */
  number: BigInteger;
  moved_at: Stamp;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    events: EventsTable;
    event_cursors: EventCursorsTable;
  }
}

/** Events are numbered once they are committed, and consumers that last keep their place by that number. */
export const eventMigrations: Migrations = {
  "010-event-numbers": [
    // Null until the event is committed and numbered: see number_events below. What is there already is numbered like news.
    "alter table events add column number bigint",
    "create sequence event_numbers",
    "create index events_unnumbered on events (position) where number is null",
    "create unique index events_number on events (number) where number is not null",
    "create index events_subject_number on events (subject, number) where number is not null",
    "create index events_account_number on events (account_id, number) where number is not null",
    // The column xid stays: gateways of the release before write and read it.
    "drop index events_order",
    "drop index events_subject",

    /*
     * Gives up to 1,000 committed events their numbers, and says how many those were. One runs at a time, and lets the
     * next one begin only when its numbers can be seen: who has seen a number will never be shown a lower one. The order
     * is that of positions, which is that of commits wherever one transaction wrote after the other had ended, as all do
     * that change the same row.
     */
    `create function number_events() returns integer language plpgsql as $$
      declare
        numbered integer;
      begin
        if not exists (select from events where number is null) then
          return 0;
        end if;
        -- "pilo", and 2 for the numbers of events.
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
      moved_at timestamptz not null default now()
    )`,
  ],
  // For lists of one type: of some an account has a few among millions.
  "043-event-types": ["create index events_account_type on events (account_id, type, number) where number is not null"],
};
