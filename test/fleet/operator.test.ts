import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { runAdminHere } from "../support/admin.ts";
import { moveTime } from "../support/move-time.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

function operatorOf({ databaseUrl }: SessionsApp) {
  const operate = (...args: readonly string[]) => runAdminHere({ DATABASE_URL: databaseUrl }, ...args);
  const list = async () => {
    const { stdout } = await operate("workers");
    return stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  };
  return { operate, list };
}

test("lists the workers with their state, slots, release and last heartbeat", async () => {
  await using running = await startSessionsApp({ QUEUE_MS: "0" });
  const { list } = operatorOf(running);
  expect(await list()).toEqual([]);
  const [first, second] = [await running.worker({ slots: 3 }), await running.worker({ slots: 2 })];
  for (const worker of [first, second]) worker.fallSilent();
  await first.register({ release: releaseVersion });
  await first.heartbeat({ closedBy: "memory" });
  const call = await running.caller();
  await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const heard_at = expect.stringMatching(/^20.*Z$/);
  const address = expect.stringMatching(/^127\.0\.0\.1:\d+$/);
  await second.heartbeat({ launchesFail: true });
  expect(await list()).toEqual([
    { id: first.id, address, state: "closed", slots: 3, held: 0, release: releaseVersion, heard_at },
    { id: second.id, address, state: "failing", slots: 2, held: 1, release: "", heard_at },
  ]);
});

test("drains a worker once: placement avoids the worker, and its next heartbeat answers the request", async () => {
  await using running = await startSessionsApp({ QUEUE_MS: "0" });
  const { operate, list } = operatorOf(running);
  const worker = await running.worker();
  worker.fallSilent();
  const call = await running.caller();
  const begin = () => running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  await begin();
  expect(await operate("drain", worker.id)).toEqual({
    status: 0,
    stdout: `${worker.id} accepts no new sessions, and exits after its last one.\n`,
    stderr: "",
  });
  await expect(begin()).rejects.toMatchObject({ slug: "capacity-unavailable" });
  expect((await operate("drain", worker.id)).stderr).toMatch(/is draining already/);
  expect(await worker.heartbeat()).toMatchObject({ drain: true });
  expect(await list()).toMatchObject([{ id: worker.id, state: "draining" }]);
  // Another process start of the worker.
  await worker.register({ bootId: "again" });
  expect(await worker.heartbeat()).toMatchObject({ drain: false });
  expect(await list()).toMatchObject([{ id: worker.id, state: "ready" }]);
});

const lostWorkers = async ({ app }: SessionsApp) =>
  (await app.metrics.getSingleMetric("pilothouse_workers_lost_total")?.get())?.values[0]?.value;

/** Lets the next sweep of leases run. */
async function sweep({ app, pass }: SessionsApp): Promise<void> {
  const swept = app.db.sql.selectFrom("lease_sweep").select("swept_at");
  const sweptAt = async () => Number((await swept.executeTakeFirstOrThrow()).swept_at);
  const before = await sweptAt();
  pass(1_000);
  await expect.poll(sweptAt, { timeout: 20_000 }).toBeGreaterThan(before);
}

test("a worker that leaves is not counted as lost, and another process start is ready again", async () => {
  await using running = await startSessionsApp({ QUEUE_MS: "0" });
  const { operate, list } = operatorOf(running);
  const worker = await running.worker();
  worker.fallSilent();
  await worker.heartbeat({ draining: true, leaving: true });
  expect(await list()).toMatchObject([{ id: worker.id, state: "left" }]);
  expect((await operate("drain", worker.id)).stderr).toMatch(/has left already/);
  await sweep(running);
  expect(await lostWorkers(running)).toBe(0);
  await worker.register({ bootId: "again" });
  await worker.heartbeat();
  expect(await list()).toMatchObject([{ id: worker.id, state: "ready" }]);
});

test("refuses to drain a lost worker, and the embedded one", async () => {
  await using running = await startSessionsApp();
  const { operate, list } = operatorOf(running);
  const worker = await running.worker();
  worker.die();
  // The first sweep of a database renews all leases.
  await sweep(running);
  const lease = { lease_until: new Date(0) };
  await running.app.db.sql.updateTable("worker_leases").set(lease).execute();
  await sweep(running);
  await expect.poll(list, { timeout: 20_000 }).toMatchObject([{ id: worker.id, state: "lost" }]);
  expect(await lostWorkers(running)).toBe(1);
  expect((await operate("drain", worker.id)).stderr).toMatch(/is lost already/);
  const embedded = await runAdminHere({ DATA_DIR: running.app.config.dataDir }, "drain", worker.id);
  expect([embedded.status, embedded.stderr]).toEqual([1, expect.stringMatching(/drain is for separate workers/)]);
}, 40_000);

test("lists a lost worker for a day", async () => {
  await using running = await startSessionsApp();
  const { list } = operatorOf(running);
  const { db } = running.app;
  const worker = await running.worker();
  worker.die();
  const lost = { lost_at: sql<Date>`app_now()` };
  await db.sql.updateTable("worker_leases").set(lost).execute();
  await moveTime(db, 23 * 3_600_000);
  expect(await list()).toMatchObject([{ id: worker.id, state: "lost" }]);
  await moveTime(db, 25 * 3_600_000);
  expect(await list()).toEqual([]);
});
