import { type Generated, type JSONColumnType, sql } from "kysely";
import type { Database, NamedStatement, Tx } from "../platform/database.ts";
import type { BigInteger, Stamp } from "../platform/schema.ts";
import type { Cursor } from "./cursor.ts";
import type { EventPayload } from "./payload.ts";

/** What happened, in the transaction in which it happened. */
interface EventsTable {
  position: Generated<string>;
  xid: Generated<string>;
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

declare module "../platform/schema.ts" {
  interface Schema {
    events: EventsTable;
  }
}

/** An event as it is kept. */
export interface StoredEvent {
  readonly cursor: Cursor;
  readonly id: string;
  readonly accountId: string;
  readonly type: string;
  readonly subject: string;
  readonly data: EventPayload["data"];
  readonly createdAt: Date;
}

/** Key of an event that a worker reported: with the subject, by which it is applied once. */
export interface WorkerEventKey {
  readonly placementEpoch: bigint;
  readonly incarnation: bigint;
  readonly sequence: bigint;
}

/** An event to keep. */
export interface NewEvent {
  readonly id: string;
  readonly accountId: string;
  /** Identifier of the thing that it happened to. */
  readonly subject: string;
  readonly payload: EventPayload;
  readonly workerKey: WorkerEventKey | undefined;
}

interface EventRow {
  readonly xid: string;
  readonly position: string;
  readonly id: string;
  readonly account_id: string;
  readonly type: string;
  readonly subject: string;
  readonly data: EventPayload["data"];
  readonly created_at: Date;
}

const columns = "xid::text, position, id, account_id, type, subject, data, created_at";

/**
 * Only transactions that ended before every open one began: what they wrote can no longer be preceded by anything.
 * A plain `position > $1` would step over rows of transactions that are still open.
 */
const isSettled = "xid < pg_snapshot_xmin(pg_current_snapshot())";

const tailStatement: NamedStatement = {
  name: "events-tail",
  text: `select ${columns} from events
    where (xid, position) > ($1::xid8, $2::bigint) and ${isSettled}
    order by xid, position limit $3`,
};

const subjectStatement: NamedStatement = {
  name: "events-of-subject",
  text: `select ${columns} from events
    where subject = $1 and (xid, position) > ($2::xid8, $3::bigint) and ${isSettled}
    order by xid, position limit $4`,
};

const endStatement: NamedStatement = {
  name: "events-end",
  text: "select pg_snapshot_xmin(pg_current_snapshot())::text as xid",
};

const findStatement: NamedStatement = {
  name: "events-find",
  text: "select xid::text, position, type from events where id = $1 and account_id = $2 and subject = $3",
};

const toEvent = (row: EventRow): StoredEvent => ({
  cursor: { xid: BigInt(row.xid), position: BigInt(row.position) },
  id: row.id,
  accountId: row.account_id,
  type: row.type,
  subject: row.subject,
  data: row.data,
  createdAt: row.created_at,
});

const cursorValues = ({ xid, position }: Cursor): string[] => [String(xid), String(position)];

/** Inserts an event, at the latest with the commit; false when one with the same worker key is there already. */
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

/** Reads events after a place, in order. */
export async function readTail(db: Database, after: Cursor, limit: number): Promise<StoredEvent[]> {
  return (await db.named<EventRow>(tailStatement, [...cursorValues(after), limit])).map(toEvent);
}

/** Reads events of one thing after a place, in order. */
export async function readSubject(db: Database, subject: string, after: Cursor, limit: number): Promise<StoredEvent[]> {
  return (await db.named<EventRow>(subjectStatement, [subject, ...cursorValues(after), limit])).map(toEvent);
}

/** Finds the place before everything that is not settled yet. */
export async function readEnd(db: Database): Promise<Cursor> {
  const [row] = await db.named<{ xid: string }>(endStatement, []);
  return { xid: BigInt(row?.xid ?? 0), position: 0n };
}

/** An event by its identifier, if it is one of this thing of this account. */
export interface EventReference {
  readonly id: string;
  readonly accountId: string;
  readonly subject: string;
}

/** Finds the place and the type of an event. */
export async function findEvent(
  db: Database,
  { id, accountId, subject }: EventReference,
): Promise<{ cursor: Cursor; type: string } | undefined> {
  const values = [id, accountId, subject];
  const [row] = await db.named<{ xid: string; position: string; type: string }>(findStatement, values);
  return row && { cursor: { xid: BigInt(row.xid), position: BigInt(row.position) }, type: row.type };
}
