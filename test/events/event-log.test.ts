import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createEventLog, type EventLog } from "../../src/events/event-log.ts";
import { eventPayload } from "../../src/events/payload.ts";
import { readEnd } from "../../src/events/store.ts";
import { AgentSessionTurnEndedEventSchema, TurnStatus } from "../../src/gen/pilothouse/v1/agent_session_pb.ts";
import { CryptoOrderPaidEventSchema } from "../../src/gen/pilothouse/v1/crypto_order_pb.ts";
import {
  SessionEndedReason,
  SessionFailedEventSchema,
  SessionLiveEventSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Tx } from "../../src/platform/database.ts";
import { createIds } from "../../src/platform/ids.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";

const ids = createIds(systemClock);
const bus = createLocalBus();
const accountId = ids.next("acc");
let database: TestDatabase;
let events: EventLog;

beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  events = createEventLog({ db: database.db, bus, ids, log: silentLog });
  events.start();
});

afterAll(async () => {
  await events.stop();
  await database[Symbol.asyncDispose]();
});

const append = (tx: Tx, subject: string) =>
  events.append(
    tx,
    { accountId, subject },
    SessionLiveEventSchema,
    create(SessionLiveEventSchema, { sessionId: subject }),
  );

/** Opens a transaction that has written, and gives the way to end it. */
async function openTransaction(write: (tx: Tx) => Promise<unknown>) {
  const written = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const done = database.db.transaction(async (tx) => {
    await write(tx);
    // Behind what was only sent.
    await sql`select 1`.execute(tx.sql);
    written.resolve();
    await finish.promise;
  });
  await Promise.race([written.promise, done]);
  return async () => {
    finish.resolve();
    await done;
  };
}

test("should not step over an event whose transaction is still open", async () => {
  const start = await readEnd(database.db);
  const subjects = async () => (await events.tail(start, 10)).map(({ subject }) => subject);
  const commit = await openTransaction((tx) => append(tx, "slow"));
  await database.db.transaction((tx) => append(tx, "fast"));

  const { rows } = await sql<{ subject: string }>`select subject from events order by position`.execute(
    database.db.sql,
  );
  expect(rows.map(({ subject }) => subject)).toEqual(["fast"]);
  expect(await subjects()).toEqual([]);
  await commit();
  expect(await subjects()).toEqual(["slow", "fast"]);
});

test("should order by transaction when positions run against it", async () => {
  const start = await readEnd(database.db);
  let appendLate = async (): Promise<unknown> => undefined;
  const commit = await openTransaction(async (tx) => {
    await sql`select pg_current_xact_id()`.execute(tx.sql);
    appendLate = () => append(tx, "older transaction, later position");
  });
  await database.db.transaction((tx) => append(tx, "younger transaction"));
  await appendLate();
  await commit();
  const seen = (await events.tail(start, 10)).map(({ subject }) => subject);
  expect(seen).toEqual(["older transaction, later position", "younger transaction"]);
});

test("should bring every event once to a watcher that began while transactions were open", async () => {
  const stop = new AbortController();
  const commit = await openTransaction((tx) => append(tx, "watched"));
  const seen: string[] = [];
  const watching = await events.watch({ accountId, subject: "watched", signal: stop.signal });
  const reading = (async () => {
    for await (const { id } of watching) if (seen.push(id ?? "") === 41) stop.abort();
  })();
  await Promise.all(Array.from({ length: 40 }, () => database.db.transaction((tx) => append(tx, "watched"))));
  await commit();
  await reading;
  expect(new Set(seen).size).toBe(41);
});

test("should find events within a second although nobody told of them", async () => {
  const stop = new AbortController();
  const watching = await events.watch({ accountId, subject: "untold", signal: stop.signal });
  const first = watching[Symbol.asyncIterator]().next();
  const deaf = createEventLog({ db: database.db, bus: createLocalBus(), ids, log: silentLog });
  const data = create(SessionLiveEventSchema, { sessionId: "untold" });
  await database.db.transaction((tx) =>
    deaf.append(tx, { accountId, subject: "untold" }, SessionLiveEventSchema, data),
  );
  expect((await first).value).toMatchObject({ type: "session.live", data: { session_id: "untold" } });
  stop.abort();
});

test("should append a worker's event once", async () => {
  const workerKey = { placementEpoch: 1n, incarnation: 2n, sequence: 3n };
  const data = create(SessionLiveEventSchema, { sessionId: "keyed" });
  const once = () =>
    database.db.transaction((tx) =>
      events.append(tx, { accountId, subject: "keyed", workerKey }, SessionLiveEventSchema, data),
    );
  expect([await once(), await once()]).toEqual([true, false]);
});

test("should write a payload as the REST JSON has it", () => {
  const data = { sessionId: "ses_1", durationMs: 12n, endedReason: SessionEndedReason.WORKER_LOST };
  expect(eventPayload(SessionFailedEventSchema, create(SessionFailedEventSchema, data))).toEqual({
    type: "session.failed",
    data: { session_id: "ses_1", duration_ms: 12, ended_reason: "worker_lost", detail: "" },
  });
});

test("should write times, messages and lists in a payload, and leave out an enum that was not said", () => {
  const order = { orderId: "ord_1", paidAt: timestampFromMs(Date.UTC(2026, 0, 31)), months: 1 };
  const turn = { turnId: "trn_1", status: TurnStatus.COMPLETED };
  expect([
    eventPayload(CryptoOrderPaidEventSchema, create(CryptoOrderPaidEventSchema, order)).data,
    eventPayload(
      AgentSessionTurnEndedEventSchema,
      create(AgentSessionTurnEndedEventSchema, { agentSessionId: "agt_1", turn }),
    ).data,
  ]).toEqual([
    {
      order_id: "ord_1",
      months: 1,
      amount_cents: 0,
      currency: "",
      crypto_currency: "",
      crypto_amount_paid: "",
      paid_at: "2026-01-31T00:00:00.000Z",
      livemode: false,
    },
    { agent_session_id: "agt_1", turn: { turn_id: "trn_1", status: "completed" } },
  ]);
});
