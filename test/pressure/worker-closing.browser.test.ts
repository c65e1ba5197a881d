import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import {
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  NavigateRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { freePorts } from "../support/free-port.ts";
import { longTest } from "../support/long-test.ts";
import { MemoryCgroup } from "../support/memory-cgroup.ts";
import { startSessionsApp } from "../support/sessions-app.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

const mib = 2 ** 20;
const limit = 1_500 * mib;

/** Milliseconds. Allows a busy machine to do the work of one second. */
const timeout = 30_000;

longTest(
  "a worker in a control group closes before a page exhausts its memory, and opens again",
  async () => {
    const site = await new FixtureSite().start();
    onTestFinished(() => site.stop());
    using cgroup = new MemoryCgroup(limit);
    await using running = await startSessionsApp({ QUEUE_MS: "1500" });
    const { INTERNAL_PORT } = await freePorts("INTERNAL_PORT");
    const env = { EGRESS_ALLOW: site.host, CLOSE_AT_MEMORY: "50", INTERNAL_PORT: String(INTERNAL_PORT) };
    await using _worker = startWorkerProcess(running.app, env, cgroup.directory);
    const { sessions, app } = running;
    const call = await running.caller();
    const begin = () => sessions.create(call(), create(CreateSessionRequestSchema, {}));
    const closedBy = async () =>
      (await app.db.sql.selectFrom("worker_leases").select("closed_by").executeTakeFirst())?.closed_by;
    const slots = async () => /pilothouse_slots\{state="closed"\} (\d+)/.exec(await app.metrics.metrics())?.[1];
    const metrics = async () => (await fetch(`http://127.0.0.1:${INTERNAL_PORT}/metrics`)).text();

    await expect.poll(() => begin().then(() => true, String), { timeout }).toBe(true);
    const hungry = await begin();
    const url = site.url("/eat.html?megabytes=900");
    await sessions.navigate(call(), create(NavigateRequestSchema, { id: hungry.id, url }));
    await expect.poll(closedBy, { timeout }).toBe("memory");

    const since = performance.now();
    await expect(begin()).rejects.toMatchObject({ slug: "capacity-unavailable", retryAfter: expect.any(Number) });
    expect(performance.now() - since).toBeGreaterThanOrEqual(1_500);
    await expect.poll(slots, { timeout }).toBe("2");
    expect(await metrics()).toMatch(/pilothouse_worker_closed\{kind="memory"\} 1/);
    expect(await metrics()).toMatch(/pilothouse_worker_pressure\{kind="memory"\} 0\.[4-9]/);

    await sessions.destroy(call(), create(DestroySessionRequestSchema, { id: hungry.id }));
    await expect.poll(closedBy, { timeout }).toBe(null);
    await begin();
  },
  120_000,
);

test("a closed worker rejects a session that a gateway sends, and reports that it has no capacity", async () => {
  const worker = await WorkerUnderTest.start([]);
  onTestFinished(() => worker.stop());
  worker.sessions.closedBy = "memory";
  await expect(worker.open()).rejects.toMatchObject({ slug: "capacity-unavailable", retryAfter: expect.any(Number) });
  expect(worker.sessions.free).toBe(0);
  worker.sessions.closedBy = undefined;
  await worker.open();
}, 60_000);
