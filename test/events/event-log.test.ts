import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createEventLog, type EventLog } from "../../src/events/event-log.ts";
import { insertEvent, listEvents, readEvents, readLastNumber } from "../../src/events/store.ts";
import { AgentSessionTurnEndedEventSchema, TurnStatus } from "../../src/gen/pilothouse/v1/agent_turn_pb.ts";
import { CryptoOrderPaidEventSchema } from "../../src/gen/pilothouse/v1/crypto_order_pb.ts";
import {
  SessionEndedReason,
  SessionFailedEventSchema,
  SessionLiveEventSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { fail } from "../../src/platform/errors.ts";
import { eventPayload } from "../../src/platform/event-payload.ts";
import { createIds } from "../../src/platform/ids.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { DatabaseUnavailable } from "../../src/platform/postgres/database-unavailable.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";
import { createTestClock } from "../support/test-clock.ts";

const clock = createTestClock();
const ids = createIds(clock);
const bus = createLocalBus();
const accountId = ids.next("acc");
let database: TestDatabase;
let events: EventLog;

beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  events = createEventLog({ db: database.db, bus, ids, clock, log: silentLog });
  events.start();
});

afterAll(async () => {
  await events.stop();
  await database[Symbol.asyncDispose]();
});

/** Events are numbered within a second even without a notification. */
const pollOptions = { timeout: 10_000 };

const append = (tx: Tx, subject: string) =>
  events.append(
    tx,
    { accountId, subject },
    SessionLiveEventSchema,
    create(SessionLiveEventSchema, { sessionId: subject }),
  );

/** Opens a transaction with a write. Returns the function that commits it. */
async function openTransaction(write: (tx: Tx) => Promise<unknown>) {
  const written = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  const done = database.db.transaction(async (tx) => {
    await write(tx);
    // Waits until PostgreSQL has executed pipelined statements.
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

test("delivers committed events while older transactions are open in this or another database", async () => {
  await using other = await startTestDatabase();
  const foreign = new pg.Client({ connectionString: other.url });
  await foreign.connect();
  await foreign.query("begin; select pg_current_xact_id()");
  const commit = await openTransaction((tx) => append(tx, "slow"));
  const stop = new AbortController();
  const watching = await events.watch({ accountId, subject: "fast", signal: stop.signal });
  await database.db.transaction((tx) => append(tx, "fast"));
  expect((await watching[Symbol.asyncIterator]().next()).value).toMatchObject({ data: { session_id: "fast" } });
  stop.abort();
  await commit();
  await foreign.end();
});

test("delivers events that are committed long after they were written", async () => {
  const commit = await openTransaction((tx) => append(tx, "late"));
  await database.db.transaction((tx) => append(tx, "early"));
  const subjects = async () => (await readEvents(database.db, 0n, 1_000)).map(({ subject }) => subject);
  await expect.poll(subjects, pollOptions).toContain("early");
  expect(await subjects()).not.toContain("late");
  await commit();
  await expect.poll(async () => (await subjects()).at(-1), pollOptions).toBe("late");
});

test("follows from now on, without events committed just before", async () => {
  const stop = new AbortController();
  await database.db.transaction((tx) => append(tx, "since"));
  const watching = await events.watch({ accountId, subject: "since", signal: stop.signal });
  const { id } = await database.db.transaction(async (tx) => {
    await append(tx, "since");
    return tx.sql.selectFrom("events").select("id").orderBy("position", "desc").executeTakeFirstOrThrow();
  });
  expect((await watching[Symbol.asyncIterator]().next()).value.id).toBe(id);
  stop.abort();
});

test("refuses to follow from an unknown event", async () => {
  const after = (id: string, subject: string) =>
    events.watch({ accountId, subject, after: id, signal: AbortSignal.timeout(1) });
  for (const id of ["", "evt_bad", ids.next("evt")]) {
    await expect(after(id, "since")).rejects.toMatchObject({ slug: "not-found" });
  }
  const row = await database.db.sql.selectFrom("events").select("id").where("subject", "=", "early").executeTakeFirst();
  await expect(after(row?.id ?? "", "since")).rejects.toMatchObject({ slug: "not-found" });
});

test("delivers every event once to a watcher that started while transactions were open", async () => {
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

test("delivers all events in order if PostgreSQL was unavailable when the reader started", async () => {
  const written = async () => {
    const rows = database.db.sql.selectFrom("events").select("id").where("subject", "=", "away");
    return (await rows.where("number", "is not", null).orderBy("number").execute()).map(({ id }) => id);
  };
  for (let count = 0; count < 2; count += 1) await database.db.transaction((tx) => append(tx, "away"));
  await expect.poll(written, pollOptions).toHaveLength(2);
  let failures = 1;
  const named: typeof database.db.named = (statement, values) => {
    if (statement.name !== "events-of-subject" || failures === 0) return database.db.named(statement, values);
    failures -= 1;
    return Promise.reject(fail("internal", {}, { cause: new DatabaseUnavailable(undefined) }));
  };
  // The tail of this log begins after both events.
  const unlucky = createEventLog({ db: { ...database.db, named }, bus, ids, clock, log: silentLog });
  unlucky.start();
  onTestFinished(() => unlucky.stop());
  const stop = new AbortController();
  const [after] = await written();
  const watching = await unlucky.watch({ accountId, subject: "away", after, signal: stop.signal });
  const reader = watching[Symbol.asyncIterator]();
  const first = reader.next();
  await expect.poll(() => failures).toBe(0);
  clock.advance(1_000);
  await database.db.transaction((tx) => append(tx, "away"));
  expect([after, (await first).value.id, (await reader.next()).value.id]).toEqual(await written());
  stop.abort();
});

test("numbers and delivers within a second the events that a dead gateway left unnumbered", async () => {
  const stop = new AbortController();
  const watching = await events.watch({ accountId, subject: "untold", signal: stop.signal });
  const payload = eventPayload(SessionLiveEventSchema, create(SessionLiveEventSchema, { sessionId: "untold" }));
  const event = { id: ids.next("evt"), accountId, subject: "untold", payload, workerKey: undefined };
  await database.db.transaction((tx) => insertEvent(tx, event));
  clock.advance(1_000);
  const first = await watching[Symbol.asyncIterator]().next();
  expect(first.value).toMatchObject({ type: "session.live", data: { session_id: "untold" } });
  stop.abort();
});

test("delivers each event to one consumer at a time, once, and again after a failure", async () => {
  for (const subject of ["c1", "c2", "c3"]) await database.db.transaction((tx) => append(tx, subject));
  await expect
    .poll(() => readEvents(database.db, 0n, 1_000).then((all) => all.at(-1)?.subject), pollOptions)
    .toBe("c3");
  const all = (await readEvents(database.db, 0n, 1_000)).map(({ id }) => id);
  const taken: string[] = [];
  const take = (fails = false) =>
    events.consume("test", all.length - 2, async (tx, batch) => {
      expect(await events.consume("test", 1, async () => undefined)).toBe(0);
      tx.afterCommit(() => taken.push(...batch.map(({ id }) => id)));
      if (fails) throw new Error("not today");
    });
  await expect(take(true)).rejects.toThrow("not today");
  expect([await take(), await take(), await take()]).toEqual([all.length - 2, 2, 0]);
  expect(taken).toEqual(all);
  expect(await events.consume("another consumer", all.length, async () => undefined)).toBe(all.length);
  expect(await events.consume("a third consumer", 1, async () => undefined)).toBe(1);
  expect(await events.consume("another consumer", 1, async () => undefined)).toBe(0);
});

test("deletes events after 30 days in bounded batches and keeps the positions of consumers", async () => {
  const end = await readLastNumber(database.db);
  await sql`insert into events (id, account_id, type, subject, data, created_at)
    select 'evt_old' || n, ${accountId}, 'session.live', 'old', '{}', now() - interval '30 days 1 minute'
    from generate_series(1, 2500) n`.execute(database.db.sql);
  await database.db.transaction((tx) => append(tx, "young"));
  await expect.poll(() => readLastNumber(database.db), pollOptions).toBe(end + 2_501n);
  await sql`update events set created_at = now() - interval '30 days' + interval '1 minute'
    where subject = 'young'`.execute(database.db.sql);
  // Also expires the events of the previous tests.
  await sql`update events set created_at = now() - interval '31 days' where number <= ${end}`.execute(database.db.sql);
  await events.sweep();
  const left = await readEvents(database.db, 0n, 10);
  expect(left.map(({ subject, number }) => ({ subject, number }))).toEqual([
    { subject: "young", number: end + 2_501n },
  ]);
  expect(await events.consume("test", 10, async () => undefined)).toBe(1);
});

test("delivers all events in order to a reader that is far behind", async () => {
  const stop = new AbortController();
  const watch = () => events.watch({ accountId, subject: "many", signal: stop.signal });
  const [slow, fast] = [(await watch())[Symbol.asyncIterator](), await watch()];
  await database.db.transaction((tx) => append(tx, "many"));
  const seen: Record<"slow" | "fast", string[]> = { slow: [(await slow.next()).value.id], fast: [] };
  const many = 1_100;
  await database.db.transaction(async (tx) => {
    for (let count = 0; count < many; count += 1) await append(tx, "many");
  });
  for await (const { id } of fast) if (seen.fast.push(id ?? "") === many + 1) break;
  while (seen.slow.length < many + 1) seen.slow.push((await slow.next()).value.id);
  expect(seen.slow).toEqual(seen.fast);
  expect(new Set(seen.slow).size).toBe(many + 1);
  stop.abort();
});

test("appends a worker's event once", async () => {
  const workerKey = { placementEpoch: 1n, incarnation: 2n, sequence: 3n };
  const data = create(SessionLiveEventSchema, { sessionId: "keyed" });
  const once = () =>
    database.db.transaction((tx) =>
      events.append(tx, { accountId, subject: "keyed", workerKey }, SessionLiveEventSchema, data),
    );
  expect([await once(), await once()]).toEqual([true, false]);
});

test("writes a payload in REST JSON form", () => {
  const data = { sessionId: "ses_1", durationMs: 12n, endedReason: SessionEndedReason.WORKER_LOST };
  expect(eventPayload(SessionFailedEventSchema, create(SessionFailedEventSchema, data))).toEqual({
    type: "session.failed",
    data: { session_id: "ses_1", duration_ms: 12, ended_reason: "worker_lost", detail: "" },
  });
});

test("writes times, messages and lists in a payload and omits an unspecified enum", () => {
  const order = { orderId: "ord_1", paidAt: timestampFromMs(Date.UTC(2026, 0, 31)), months: 1 };
  const turn = { turnId: "trn_1", status: TurnStatus.DONE };
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
    {
      agent_session_id: "agt_1",
      turn: {
        turn_id: "trn_1",
        status: "done",
        steps: 0,
        tokens: 0,
        worked_ms: 0,
        model_ms: 0,
        settling_ms: 0,
        waiting_ms: 0,
      },
    },
  ]);
});

test("lists numbered events only", async () => {
  const listed = await database.db.transaction(async (tx) => {
    await append(tx, "unnumbered");
    const query = { accountId, types: ["session.live"], subject: "unnumbered", before: undefined, limit: 1 };
    return listEvents(tx, query);
  });
  expect(listed).toEqual([]);
});
