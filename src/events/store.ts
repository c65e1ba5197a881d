import { type RawBuilder, type SqlBool, sql } from "kysely";
import "./tables.ts";
import type { EventPayload } from "../platform/event-payload.ts";
import type { NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";

export interface StoredEvent {
  /** Position in the log, assigned after the commit. A reader that has seen a number never sees a lower one appear. */
  readonly number: bigint;
  readonly id: string;
  readonly accountId: string;
  readonly type: string;
  readonly subject: string;
  readonly data: EventPayload["data"];
  readonly createdAt: Date;
}

/** Key of a worker's event. With the subject, ensures that the event is applied once. */
export interface WorkerEventKey {
  readonly placementEpoch: bigint;
  readonly incarnation: bigint;
  readonly sequence: bigint;
}

export interface NewEvent {
  readonly id: string;
  readonly accountId: string;
  /** Identifier of the object that the event is about. */
  readonly subject: string;
  readonly payload: EventPayload;
  readonly workerKey: WorkerEventKey | undefined;
}

interface EventRow {
  readonly number: string;
  readonly id: string;
  readonly account_id: string;
  readonly type: string;
  readonly subject: string;
  readonly data: EventPayload["data"];
  readonly created_at: Date;
}

const columns = "number, id, account_id, type, subject, data, created_at";

const tailStatement: NamedStatement = {
  name: "events-tail",
  text: `select ${columns} from events where number > $1 order by number limit $2`,
};

const subjectStatement: NamedStatement = {
  name: "events-of-subject",
  text: `select ${columns} from events where subject = $1 and number > $2 order by number limit $3`,
};

const accountStatement: NamedStatement = {
  name: "events-of-account",
  text: `select ${columns} from events where account_id = $1 and number > $2 order by number limit $3`,
};

const endStatement: NamedStatement = {
  name: "events-end",
  text: "select coalesce(max(number), 0) as number from events where number is not null",
};

const lastOfSubjectStatement: NamedStatement = {
  name: "events-last-of-subject",
  text: "select id from events where subject = $1 and number <= $2 order by number desc limit 1",
};

const lastOfAccountStatement: NamedStatement = {
  name: "events-last-of-account",
  text: "select id from events where account_id = $1 and number <= $2 order by number desc limit 1",
};

const findStatement: NamedStatement = {
  name: "events-find",
  text: `select number, type from events
    where id = $1 and account_id = $2 and ($3::text is null or subject = $3) and number is not null`,
};

/** Checks only the events with the lowest numbers, so that a sweep reads at most `limit` events. */
const sweepStatement: NamedStatement = {
  name: "events-sweep",
  text: `delete from events where number in (
      select number
      from (select number, created_at from events where number is not null order by number limit $2) as oldest
      where created_at < app_now() - $1 * interval '1 day'
    ) returning 1`,
};

const toEvent = (row: EventRow): StoredEvent => ({
  number: BigInt(row.number),
  id: row.id,
  accountId: row.account_id,
  type: row.type,
  subject: row.subject,
  data: row.data,
  createdAt: row.created_at,
});

/** Inserts an event. The statement is sent no later than the commit. Returns false if its worker key exists. */
export async function insertEvent(tx: Tx, { id, accountId, subject, payload, workerKey }: NewEvent): Promise<boolean> {
  const insertion = tx.sql
    .insertInto("events")
    .values({
      id,
      account_id: accountId,
      subject,
      type: payload.type,
      data: JSON.stringify(payload.data),
      placement_epoch: workerKey?.placementEpoch ?? null,
      incarnation: workerKey?.incarnation ?? null,
      sequence: workerKey?.sequence ?? null,
    })
    .onConflict((conflict) =>
      conflict
        .columns(["subject", "placement_epoch", "incarnation", "sequence"])
        .where("sequence", "is not", null)
        .doNothing(),
    )
    .returning(sql<number>`1`.as("inserted"));
  if (workerKey) return (await insertion.executeTakeFirst()) !== undefined;
  tx.send(insertion);
  return true;
}

/** Reads events after a number, in order. */
export async function readEvents(db: Queryable, after: bigint, limit: number): Promise<StoredEvent[]> {
  return (await db.named<EventRow>(tailStatement, [after, limit])).map(toEvent);
}

const newStatement: NamedStatement = {
  name: "events-new",
  text: `select exists (select from events where number is null) or exists (select from events where number > $1) as new`,
};

/** Returns whether there are events without a number, or with a number above `after`. */
export async function hasNewEvents(db: Queryable, after: bigint): Promise<boolean> {
  return (await db.named<{ new: boolean }>(newStatement, [after]))[0]?.new === true;
}

/** Events of a subject, or of a whole account. */
export interface EventScope {
  readonly accountId: string;
  readonly subject?: string | undefined;
}

/** Reads events of a subject or account after a number, in order. */
export async function readOwned(db: Queryable, { accountId, subject }: EventScope, after: bigint, limit: number) {
  const statement = subject === undefined ? accountStatement : subjectStatement;
  return (await db.named<EventRow>(statement, [subject ?? accountId, after, limit])).map(toEvent);
}

/** Returns the identifier of the last event of a subject or account up to a number. */
export async function findLastId(db: Queryable, { accountId, subject }: EventScope, upTo: bigint) {
  const statement = subject === undefined ? lastOfAccountStatement : lastOfSubjectStatement;
  const [row] = await db.named<{ id: string }>(statement, [subject ?? accountId, upTo]);
  return row?.id;
}

/** Filter and page of a list of events. */
export interface EventListQuery extends EventScope {
  readonly types: readonly string[];
  /** Only events before this number. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Lists events, newest first. */
export async function listEvents(db: Queryable, query: EventListQuery): Promise<StoredEvent[]> {
  let select = db.sql
    .selectFrom("events")
    .select(["number", "id", "account_id", "type", "subject", "data", "created_at"])
    .where("account_id", "=", query.accountId)
    .where("number", "is not", null)
    .where("type", "in", query.types);
  if (query.subject !== undefined) select = select.where("subject", "=", query.subject);
  if (query.before !== undefined) select = select.where("number", "<", query.before);
  const rows = await select.orderBy("number", "desc").limit(query.limit).$castTo<EventRow>().execute();
  return rows.map(toEvent);
}

/** Returns the highest event number; 0 if no event has a number. */
export async function readLastNumber(db: Queryable): Promise<bigint> {
  const [row] = await db.named<{ number: string }>(endStatement, []);
  return BigInt(row?.number ?? 0);
}

/** An event identifier, limited to an account and optionally a subject. */
export interface EventReference extends EventScope {
  readonly id: string;
}

/** Returns the number and type of an event; undefined if there is no such event with a number. */
export async function findEvent(
  db: Queryable,
  { id, accountId, subject }: EventReference,
): Promise<{ number: bigint; type: string } | undefined> {
  const [row] = await db.named<{ number: string; type: string }>(findStatement, [id, accountId, subject]);
  return row && { number: BigInt(row.number), type: row.type };
}

/** Deletes up to `limit` events older than `days`. Returns their number. */
export async function deleteOldEvents(db: Queryable, days: number, limit: number): Promise<number> {
  return (await db.named(sweepStatement, [days, limit])).length;
}

const beginStatement: NamedStatement = {
  name: "events-begin",
  text: "insert into event_cursors (consumer, number) values ($1, 0) on conflict do nothing",
};

/**
 * Creates a consumer's cursor before the first event, if missing. Must run outside the consumer's transaction, because
 * a concurrent insert of the cursor would wait for its commit.
 */
export async function ensureCursor(db: Queryable, consumer: string): Promise<void> {
  await db.named(beginStatement, [consumer]);
}

// The locked cursor may be newer than the statement's snapshot, which then lacks the latest events. Numbers have no
// gaps, so the next call reads these events.
const takeStatement: NamedStatement = {
  name: "events-take",
  text: `with place as (
      select number as after from event_cursors where consumer = $1 for update skip locked
    )
    select ${columns}
    from place cross join lateral (select * from events where number > after order by number limit $2) as next
    order by number`,
};

/** Condition: a consumer has events to take, or no cursor yet. */
export const eventsAreLeft = (consumer: string): RawBuilder<SqlBool> => sql`coalesce(
  (select exists (select from events where events.number > cursors.number)
    from event_cursors as cursors where consumer = ${consumer}),
  true
)`;

/** Locks the cursor of a consumer and reads the next events. Returns none if another transaction holds the cursor. */
export async function takeEvents(tx: Tx, consumer: string, limit: number): Promise<StoredEvent[]> {
  return (await tx.named<EventRow>(takeStatement, [consumer, limit])).map(toEvent);
}

/** Advances the cursor of a consumer. */
export function advanceCursor(tx: Tx, consumer: string, number: bigint): void {
  const moved = { number, moved_at: sql<Date>`app_now()` };
  tx.send(tx.sql.updateTable("event_cursors").set(moved).where("consumer", "=", consumer));
}

const waitStatement: NamedStatement = {
  name: "events-wait",
  text: `select extract(epoch from app_now() - created_at)::float * 1000 as waited from events
    where number > (select number from event_cursors where consumer = $1) order by number limit 1`,
};

/** Returns the milliseconds that a consumer's next event has been waiting, or 0 if no event waits. */
export async function measureWait(db: Queryable, consumer: string): Promise<number> {
  const [row] = await db.named<{ waited: number }>(waitStatement, [consumer]);
  return row?.waited ?? 0;
}
