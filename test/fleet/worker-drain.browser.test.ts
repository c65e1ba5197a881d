import { readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { expect, test } from "vitest";
import {
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  GetSessionStateRequestSchema,
  WatchSessionRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createLog } from "../../src/platform/log.ts";
import { isAlive } from "../../src/platform/process-control.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { admin } from "../support/admin.ts";
import { longTest } from "../support/long-test.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.ts";

/** Milliseconds for an operation that takes a second on an idle machine. */
const timeout = 30_000;

interface Scene {
  readonly running: SessionsApp;
  readonly id: string;
  readonly worker: WorkerProcess;
  /** Log lines of the control process. */
  readonly controlLog: readonly unknown[];
  /** Payloads of the session's events, by type. */
  readonly told: ReadonlyMap<string, unknown>;
  /** Time just before SIGTERM was sent. */
  readonly drainedAt: number;
  create(): Promise<{ id: string }>;
  state(): Promise<unknown>;
  destroy(): Promise<unknown>;
  leaseUntil(): Promise<number>;
  row(): Promise<{ status: string; ended_reason: string | null } | undefined>;
  /** Time at which the session ended. */
  endedAt(): Promise<number>;
}

const listWorkers = async ({ databaseUrl }: SessionsApp) =>
  (await admin({ DATABASE_URL: databaseUrl }, "workers")).split("\n").map((line) => JSON.parse(line));

/** Starts a worker with one session and drains it by SIGTERM, or by the operator's command. */
async function drainOne(
  drainSeconds: number,
  stack: AsyncDisposableStack,
  by: "SIGTERM" | "operator" = "SIGTERM",
): Promise<Scene> {
  const controlLog: unknown[] = [];
  const log = createLog("info", { write: (line) => controlLog.push(JSON.parse(line)) });
  const running = stack.use(await startSessionsApp({ QUEUE_MS: "0" }, { log }));
  const worker = stack.use(startWorkerProcess(running.app, { DRAIN_SECONDS: String(drainSeconds) }));
  const { sessions, app } = running;
  const call = await running.caller();
  const begin = () => sessions.create(call(), create(CreateSessionRequestSchema, {}));
  let id = "";
  const tryOnce = async () => {
    ({ id } = await begin());
    return id;
  };
  await expect.poll(() => tryOnce().catch(() => ""), { timeout }).not.toBe("");
  const told = new Map<string, unknown>();
  const listening = new AbortController();
  stack.defer(() => listening.abort());
  const watched = sessions.watch(call({ signal: listening.signal }), create(WatchSessionRequestSchema, { id }));
  void (async () => {
    for await (const { type, data } of watched) told.set(type, data);
  })().catch(() => undefined);
  // By the database clock, which timestamps the rows.
  const { rows } = await sql<{ now: Date }>`select now()`.execute(app.db.sql);
  const [listed] = await listWorkers(running);
  if (by === "operator") await admin({ DATABASE_URL: running.databaseUrl }, "drain", listed.id);
  else worker.signal("SIGTERM");
  const drains = async () =>
    (await app.db.sql.selectFrom("worker_leases").select("draining").executeTakeFirst())?.draining;
  await expect.poll(drains, { timeout, interval: 20 }).toBe(true);
  return {
    running,
    id,
    worker,
    controlLog,
    told,
    drainedAt: Number(rows[0]?.now),
    create: begin,
    state: () => sessions.getState(call(), create(GetSessionStateRequestSchema, { id })),
    destroy: () => sessions.destroy(call(), create(DestroySessionRequestSchema, { id })),
    leaseUntil: async () =>
      Number(
        (await app.db.sql.selectFrom("worker_leases").select("lease_until").executeTakeFirstOrThrow()).lease_until,
      ),
    row: () =>
      app.db.sql.selectFrom("sessions").select(["status", "ended_reason"]).where("id", "=", id).executeTakeFirst(),
    endedAt: async () =>
      Number(
        (await app.db.sql.selectFrom("sessions").select("ended_at").where("id", "=", id).executeTakeFirstOrThrow())
          .ended_at,
      ),
  };
}

test("a worker that drains takes no new session, keeps its lease, and ends with its last session", async () => {
  await using stack = new AsyncDisposableStack();
  const { worker, create: begin, state, destroy, row, leaseUntil, told } = await drainOne(66, stack);
  // The worker's resolver threads exceed the names that its four slots can resolve at once, however it was started.
  expect((await readdir(`/proc/${worker.pid}/task`)).length).toBeGreaterThan(24);
  await expect(begin()).rejects.toMatchObject({ slug: "capacity-unavailable" });
  const before = await leaseUntil();
  // Two heartbeats later.
  await expect.poll(async () => (await leaseUntil()) - before, { timeout }).toBeGreaterThan(3_000);
  await expect
    .poll(() => told.get("session.ending_soon"), { timeout })
    .toEqual({ session_id: expect.any(String), ended_reason: "worker_drained", ends_at: expect.any(String) });
  await state();
  expect(isAlive(worker.pid)).toBe(true);
  await destroy();
  expect(await worker.ended).toBe(0);
  expect(await row()).toEqual({ status: "destroyed", ended_reason: "destroyed" });
}, 120_000);

longTest(
  "a worker whose drain time is up ends its remaining sessions as drained",
  async () => {
    await using stack = new AsyncDisposableStack();
    const { worker, row, drainedAt, endedAt } = await drainOne(2, stack);
    expect(await worker.ended).toBe(0);
    expect(await row()).toEqual({ status: "destroyed", ended_reason: "worker_drained" });
    expect((await endedAt()) - drainedAt).toBeGreaterThan(1_900);
  },
  120_000,
);

longTest(
  "a worker that drains ends at once on a second signal",
  async () => {
    await using stack = new AsyncDisposableStack();
    const { worker, row } = await drainOne(600, stack);
    worker.signal("SIGINT");
    expect(await worker.ended).toBe(0);
    expect(await row()).toEqual({ status: "destroyed", ended_reason: "worker_drained" });
  },
  120_000,
);

longTest(
  "a worker that the operator drains keeps its session on SIGTERM, and ends with its last session",
  async () => {
    await using stack = new AsyncDisposableStack();
    const { running, worker, controlLog, create: begin, state, destroy, row } = await drainOne(600, stack, "operator");
    await expect(begin()).rejects.toMatchObject({ slug: "capacity-unavailable" });
    await expect.poll(() => worker.output(), { timeout }).toContain("drain requested");
    expect(await listWorkers(running)).toMatchObject([{ state: "draining", slots: 4, held: 1 }]);
    worker.signal("SIGTERM");
    await state();
    await destroy();
    expect(await worker.ended).toBe(0);
    expect(await listWorkers(running)).toMatchObject([{ state: "left", held: 0 }]);
    const lines = worker
      .output()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line));
    const identity = { role: "worker", release: releaseVersion, host: hostname() };
    const expected = [
      { msg: "the worker has started" },
      { msg: "registered with a control process" },
      { msg: "the worker drains", why: "drain requested", drain_seconds: 600 },
      { msg: "the worker ends", why: "drain requested" },
    ];
    const all = expected.map((line) => expect.objectContaining({ ...identity, ...line }));
    expect(lines).toEqual(expect.arrayContaining(all));
    const [listed] = await listWorkers(running);
    const known = ["worker registered", "worker left"].map((msg) =>
      expect.objectContaining({ msg, worker_id: listed.id, host: hostname() }),
    );
    expect(controlLog).toEqual(expect.arrayContaining(known));
    expect(await row()).toEqual({ status: "destroyed", ended_reason: "destroyed" });
  },
  120_000,
);
