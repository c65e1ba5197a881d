import { randomBytes } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { sweepDeleted } from "../../../src/deletion/sweep.ts";
import { SessionLogPageSchema } from "../../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionLogLevel } from "../../../src/gen/pilothouse/v1/session_log_pb.ts";
import { fleetCommands } from "../../../src/platform/grpc/fleet-commands.ts";
import { sweepSessionLogs } from "../../../src/sessions/logs/feature.ts";
import { createPartition, dayOf, insertLogs } from "../../../src/sessions/logs/store.ts";
import { clockAt } from "../../support/clock-at.ts";
import { FakeWorker, requestOf } from "../../support/fake-worker.ts";
import { joinTeam } from "../../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { type Answer, type Rest, restClient } from "../../support/rest.ts";

const workerToken = "a token of the tests alone";
const day = 86_400_000;

let gateway: PeopleGateway;
let worker: FakeWorker;
let rest: Rest;
/** Log level of each launched session. */
const levels = new Map<string, SessionLogLevel>();

beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
  worker = new FakeWorker({
    control: `unix:${gateway.app.config.dataDir}/fleet.sock`,
    token: workerToken,
    slots: 1_000,
    handlers: {
      async create(_call, command) {
        const { sessionId = "", placementEpoch = 0n } = command.context ?? {};
        levels.set(sessionId, requestOf(fleetCommands.create, command).logs);
        worker.held.set(sessionId, placementEpoch);
        return {} as never;
      },
      async readLog(_call, command) {
        const { after, limit } = requestOf(fleetCommands.readLog, command);
        return create(SessionLogPageSchema, { entries: entries.slice(after, after + limit), dropped: 2 });
      },
    },
  });
  await worker.start();
  rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});
afterEach(async () => {
  await gateway.app.db.sql.deleteFrom("session_logs").execute();
  await gateway.app.db.sql.deleteFrom("session_log_usage").execute();
});

const entries = Array.from({ length: 5 }, (_, index) => ({ id: String(index + 1), type: "crash" }));

const pack = (page: MessageInitShape<typeof SessionLogPageSchema>): Uint8Array =>
  zstdCompressSync(toBinary(SessionLogPageSchema, create(SessionLogPageSchema, page)));
const someLog = pack({ entries, dropped: 2 });

async function launch(as: Rest = rest, request: object = {}): Promise<string> {
  const { status, body } = await as("/v1/sessions", request);
  expect(status, JSON.stringify(body)).toBe(201);
  return body.id;
}

async function end(id: string, as: Rest = rest): Promise<void> {
  expect(await as(`/v1/sessions/${id}`, undefined, { method: "DELETE" })).toMatchObject({ status: 204 });
}

/** Launches and ends a session, and stores its log. */
async function store(data = someLog, as: Rest = rest): Promise<string> {
  const id = await launch(as);
  await end(id, as);
  expect(await worker.storeLogs({ sessionId: id, placementEpoch: 1n, data })).toBe(1);
  return id;
}

const read = (id: string, query = "", as: Rest = rest): Promise<Answer> => as(`/v1/sessions/${id}/logs${query}`);

const findPartitions = async (): Promise<string[]> => {
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_inherits join pg_class on oid = inhrelid
    where inhparent = 'session_logs'::regclass order by 1`.execute(gateway.app.db.sql);
  return rows.map(({ name }) => name);
};
const partitionOf = (time: number, days = 0): string => `session_logs_${dayOf(time, days).replaceAll("-", "")}`;

describe("the level of a log", () => {
  test("is that of the request, else that of the account, else errors", async () => {
    const { rest: ada } = await gateway.signUp();
    const levelOf = async (request: object = {}) => {
      const id = await launch(ada, request);
      const { logs } = (await ada(`/v1/sessions/${id}`)).body;
      await end(id, ada);
      return [logs, levels.get(id)];
    };
    expect((await ada("/v1/account/settings")).body).toEqual({ logs: "errors" });
    expect(await levelOf()).toEqual(["errors", SessionLogLevel.ERRORS]);
    expect(await levelOf({ logs: "full" })).toEqual(["full", SessionLogLevel.FULL]);
    const changed = await ada("/v1/account/settings", { logs: "off" }, { method: "PATCH" });
    expect([changed.status, changed.body]).toEqual([200, { logs: "off" }]);
    expect(await levelOf()).toEqual(["off", SessionLogLevel.OFF]);
    expect(await levelOf({ logs: "errors" })).toEqual(["errors", SessionLogLevel.ERRORS]);
    expect((await ada("/v1/account/settings", {}, { method: "PATCH" })).body).toEqual({ logs: "off" });
  });

  test("cannot be cleared, or be changed by a member", async () => {
    const refused = await rest("/v1/account/settings", { logs: null }, { method: "PATCH" });
    expect([refused.status, refused.body.errors]).toEqual([
      400,
      [{ field: "logs", message: "must be off, errors or full" }],
    ]);
    const member = await joinTeam(gateway.url, gateway.mailbox, rest);
    const forbidden = await member.rest("/v1/account/settings", { logs: "off" }, { method: "PATCH" });
    expect(forbidden.status).toBe(403);
    expect((await member.rest("/v1/account/settings")).body).toEqual({ logs: "errors" });
  });
});

describe("a log", () => {
  test("of a running session is read from its worker, in pages", async () => {
    const id = await launch();
    const first = (await read(id, "?limit=3")).body;
    expect(first).toMatchObject({ has_more: true, level: "errors", dropped: 2, lost: false, expires_at: null });
    const second = (await read(id, `?limit=3&cursor=${first.next_cursor}`)).body;
    expect([...first.data, ...second.data].map((entry: { id: string }) => entry.id)).toEqual(["1", "2", "3", "4", "5"]);
    expect([second.has_more, second.next_cursor]).toEqual([false, null]);
    expect((await read(id, "?cursor=eA")).body.errors).toEqual([
      { field: "cursor", message: "is not a next_cursor of this list" },
    ]);
  });

  test("of an ended session is read from the database, in pages", async () => {
    const id = await store();
    const first = (await read(id, "?limit=3")).body;
    expect(first).toMatchObject({ has_more: true, level: "errors", dropped: 2, lost: false });
    const { body: session } = await rest("/v1/sessions?limit=1");
    expect(Date.parse(first.expires_at) - Date.parse(session.data[0].ended_at)).toBe(7 * day);
    const second = (await read(id, `?limit=3&cursor=${first.next_cursor}`)).body;
    expect([...first.data, ...second.data].map((entry: { id: string }) => entry.id)).toEqual(["1", "2", "3", "4", "5"]);
  });

  test("of an ended session has its files, in pages", async () => {
    const files = ["c", "b", "a"].map((name, index) => ({ file: { name }, position: BigInt(9 - index) }));
    const path = `/v1/sessions/${await store(pack({ entries, files }))}/files`;
    const first = (await rest(`${path}?limit=2`)).body;
    const second = (await rest(`${path}?limit=2&cursor=${first.next_cursor}`)).body;
    expect([...first.data, ...second.data].map(({ name }: { name: string }) => name)).toEqual(["c", "b", "a"]);
    expect([first.has_more, second.has_more]).toEqual([true, false]);
  });

  test("is streamed, from the start or after an entry", async () => {
    const id = await store();
    const idsAfter = async (headers: Record<string, string>) => {
      const { body } = await rest(`/v1/sessions/${id}/logs/stream`, undefined, { headers });
      return [...String(body).matchAll(/^id: (.*)$/gm)].map(([, number]) => number);
    };
    expect(await idsAfter({})).toEqual(["1", "2", "3", "4", "5"]);
    expect(await idsAfter({ "last-event-id": "3" })).toEqual(["4", "5"]);
    const headers = { "last-event-id": "5" };
    // After 250 ms the problem is an event of the stream.
    const { body } = await rest(`/v1/sessions/${id}/logs/stream`, undefined, { headers });
    expect(JSON.stringify(body)).toContain("session-destroyed");
  });

  test("of another account is not found", async () => {
    const id = await store();
    const { rest: stranger } = await gateway.signUp();
    for (const path of ["logs", "logs/stream"])
      expect(await stranger(`/v1/sessions/${id}/${path}`)).toMatchObject({ status: 404 });
    expect(await read("ses_none")).toMatchObject({ status: 404 });
  });

  test("is sealed in the database", async () => {
    const canary = `canary${randomBytes(8).toString("hex")}`;
    const id = await store(pack({ entries: [{ id: "1", type: "console", text: canary }] }));
    const row = await gateway.app.db.sql.selectFrom("session_logs").selectAll().executeTakeFirstOrThrow();
    expect(row.data.includes(canary)).toBe(false);
    expect((await read(id)).body.data[0].text).toBe(canary);
    // A row that was moved to another session does not open.
    const other = await store();
    const { db } = gateway.app;
    await db.sql.updateTable("session_logs").set({ data: row.data }).where("session_id", "=", other).execute();
    expect(await read(other)).toMatchObject({ status: 500 });
  });

  test("that a worker did not send within 5 s of the end is lost", async () => {
    const id = await launch();
    await end(id);
    const reading = read(id);
    expect(await Promise.race([reading, rest("/v1/account/me")])).toHaveProperty("body.account");
    gateway.pass(5_000);
    expect((await reading).body).toMatchObject({ data: [], lost: true });
    gateway.pass(-5_000);
  });

  test("that is on its way is awaited", async () => {
    const id = await launch();
    await end(id);
    const reading = read(id);
    await rest("/v1/account/me");
    await worker.storeLogs({ sessionId: id, placementEpoch: 1n, data: someLog });
    expect((await reading).body).toMatchObject({ lost: false, dropped: 2 });
  });

  test("of a session without logs is empty, and not lost", async () => {
    const id = await launch(rest, { logs: "off" });
    expect((await read(id)).body).toMatchObject({ data: [], level: "off", lost: false });
    await end(id);
    expect(await worker.storeLogs({ sessionId: id, placementEpoch: 1n, data: someLog })).toBe(0);
    expect((await read(id)).body).toMatchObject({ data: [], level: "off", lost: false });
  });

  test("is read by another person only with an entry in the audit log", async () => {
    const id = await store();
    const readers = async () => {
      const { body } = await rest("/v1/account/audit-log?action=session.read_log&limit=100");
      return body.data.filter((entry: { subject_id: string }) => entry.subject_id === id);
    };
    await read(id);
    expect(await readers()).toEqual([]);
    const member = await joinTeam(gateway.url, gateway.mailbox, rest);
    const { next_cursor } = (await read(id, "?limit=1", member.rest)).body;
    await read(id, `?limit=1&cursor=${next_cursor}`, member.rest);
    expect(await readers()).toMatchObject([{ actor: { type: "user" } }]);
  });
});

describe("a worker", () => {
  test("stores logs only of its own sessions, once, at most 64 KiB each", async () => {
    const id = await launch();
    await end(id);
    const own = { sessionId: id, placementEpoch: 1n, data: someLog };
    const other = new FakeWorker({
      control: `unix:${gateway.app.config.dataDir}/fleet.sock`,
      token: workerToken,
      slots: 1,
    });
    await other.start();
    expect(await other.storeLogs(own)).toBe(0);
    // Later sessions are not placed on it.
    await other.heartbeat({ draining: true });
    other.die();
    expect(await worker.storeLogs({ ...own, placementEpoch: 2n })).toBe(0);
    expect(await worker.storeLogs({ ...own, data: randomBytes(64 * 1024 + 1) })).toBe(0);
    const { db } = gateway.app;
    const setAge = (minutes: number) => {
      const ended_at = new Date(gateway.now() - minutes * 60_000);
      return db.sql.updateTable("sessions").set({ ended_at }).where("id", "=", id).execute();
    };
    await setAge(62);
    expect(await worker.storeLogs(own)).toBe(0);
    await setAge(58);
    expect(await worker.storeLogs({ ...own, sessionId: "ses_none" }, own)).toBe(1);
    expect(await worker.storeLogs(own)).toBe(0);
    expect((await read(id)).body.data).toHaveLength(5);
  });

  test("cannot make a gateway decompress more than 1 MiB", async () => {
    const id = await store(zstdCompressSync(Buffer.alloc(4 * 1024 * 1024)));
    expect(await read(id)).toMatchObject({ status: 500 });
  });
});

describe("after 7 days", () => {
  test("a log is no longer read, and its partition is dropped", async () => {
    const id = await store();
    const now = gateway.now();
    const readAt = async (passed: number) => {
      gateway.pass(passed);
      const { body } = await read(id);
      gateway.pass(-passed);
      return [body.data.length, body.lost];
    };
    expect(await readAt(7 * day - 60_000)).toEqual([5, false]);
    expect(await readAt(7 * day + 60_000)).toEqual([0, false]);
    const sweepAt = (time: number) => sweepSessionLogs({ db: gateway.app.db, clock: clockAt(() => time) });
    await sweepAt(now + 7 * day);
    expect(await findPartitions()).toContain(partitionOf(now));
    await sweepAt(now + 8 * day);
    const left = await findPartitions();
    expect(left).not.toContain(partitionOf(now));
    expect(left).toEqual(expect.arrayContaining([partitionOf(now, 8), partitionOf(now, 9)]));
    const usage = gateway.app.db.sql.selectFrom("session_log_usage").selectAll().where("stored_on", "=", dayOf(now));
    expect(await usage.execute()).toEqual([]);
    // A log for a dropped partition is lost, and the next one creates the partition again.
    await expect(store()).rejects.toThrow();
    await store();
    expect(await findPartitions()).toContain(partitionOf(now));
  });
});

test("the oldest logs of an account beyond its limit are deleted", async () => {
  const ids = [await store(), await store(), await store()];
  const { rest: stranger } = await gateway.signUp();
  const strangers = await store(someLog, stranger);
  const { db } = gateway.app;
  const [row] = await db.sql.selectFrom("session_logs").select("bytes").execute();
  const bytes = row?.bytes ?? 0;
  await sweepSessionLogs({ db, clock: clockAt(gateway.now) }, 2 * bytes);
  const left = await db.sql.selectFrom("session_logs").select("session_id").orderBy("session_id").execute();
  expect(left.map(({ session_id }) => session_id)).toEqual([...ids.slice(1), strangers].sort());
  const usage = await db.sql.selectFrom("session_log_usage").select("bytes").orderBy("bytes").execute();
  expect(usage).toEqual([{ bytes: String(bytes) }, { bytes: String(2 * bytes) }]);
});

test("the deletion of an account deletes its logs in all partitions, and no others", async () => {
  const owner = await gateway.signUp();
  await store(someLog, owner.rest);
  const others = await store();
  const { db } = gateway.app;
  // The first row of another partition has the same ctid as that of the first row.
  await createPartition(db, dayOf(gateway.now(), -1));
  const moved = { session_id: "ses_other", account_id: "acc_other", bytes: 1, data: Buffer.alloc(1) };
  await db.sql
    .insertInto("session_logs")
    .values({ ...moved, stored_on: dayOf(gateway.now(), -1) })
    .execute();
  await owner.rest("/v1/auth/account/delete", { password: owner.password });
  await sweepDeleted({ db, clock: clockAt(() => gateway.now() + 8 * day) });
  const left = await db.sql.selectFrom("session_logs").select("session_id").orderBy("session_id").execute();
  expect(left.map(({ session_id }) => session_id).sort()).toEqual([others, "ses_other"].sort());
});

test("a partition is created while a dump reads the logs", async () => {
  const { db } = gateway.app;
  const day = dayOf(gateway.now(), 2);
  await db.transaction(async (dump) => {
    await sql`lock table session_logs in access share mode`.execute(dump.sql);
    await createPartition(db, day);
    await createPartition(db, day);
  });
  const row = { session_id: "ses_later", account_id: "acc_other", stored_on: day, bytes: 1, data: Buffer.alloc(1) };
  await db.sql.insertInto("session_logs").values(row).execute();
  await expect(db.sql.insertInto("session_logs").values(row).execute()).rejects.toThrow(/session_logs_\d{8}_pkey/);
});

test("statements that insert logs time out after 1.5 s", async () => {
  const log = { sessionId: "ses_timed", accountId: "acc_other", data: Buffer.alloc(1) };
  const day = dayOf(gateway.now());
  await createPartition(gateway.app.db, day);
  await gateway.app.db.transaction(async (tx) => {
    await insertLogs(tx, day, [log]);
    const { rows } = await sql`select current_setting('statement_timeout') as timeout`.execute(tx.sql);
    expect(rows).toEqual([{ timeout: "1500ms" }]);
  });
});
