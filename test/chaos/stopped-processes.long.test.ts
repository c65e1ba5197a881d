import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import type { ServiceProcess } from "../support/processes.ts";
import { restClient } from "../support/rest.ts";
import { causeEvent, register, startEndpoints } from "../webhooks/scene.ts";
import { DoomedService } from "./doomed-service.ts";
import { entryOf } from "./session-ledger.ts";

let doomed: DoomedService;

beforeAll(async () => {
  // SIGUSR1 opens the inspector of a process on a free port.
  doomed = await DoomedService.start({ NODE_OPTIONS: "--inspect-port=0", WEBHOOK_ALLOW: "127.0.0.1" });
});

afterAll(() => doomed[Symbol.asyncDispose]());

/** Stops a process for a duration. */
async function stopFor(name: ServiceProcess, milliseconds: number): Promise<void> {
  const pid = doomed.service.pidOf(name);
  process.kill(pid, "SIGSTOP");
  await delay(milliseconds);
  process.kill(pid, "SIGCONT");
}

/** Expects a session to be live and to execute commands. */
async function expectLive(session: string): Promise<void> {
  const drive = async () =>
    (await doomed.rest(`${session}/navigate`, { url: doomed.site.url("/plain.html") }).catch(() => undefined))?.status;
  await expect.poll(drive, { timeout: 20_000 }).toBe(200);
  expect(await entryOf(doomed, session)).toMatchObject({ status: "live", terminalEvents: [] });
}

test.each([
  ["gateway", 30_000],
  ["control", 5_000],
  ["supervisor", 5_000],
] as const)("a %s that is stopped for %i ms ends no session and continues", { timeout: 120_000 }, async (name, ms) => {
  const session = await doomed.create();
  const pid = doomed.service.pidOf(name);
  await stopFor(name, ms);
  // Longer than a lease, after which missed heartbeats have taken effect.
  await delay(9_000);
  await expectLive(session);
  expect(doomed.service.pidOf(name)).toBe(pid);
  await doomed.destroy(session);
});

test("the next gateway makes a delivery that a killed gateway had started, before the lease ends", {
  timeout: 60_000,
}, async () => {
  await using receiver = await startEndpoints(() => undefined);
  const rest = restClient(doomed.service);
  await register(rest, receiver.url("/"));
  await causeEvent(rest);
  await expect.poll(() => receiver.arrivals.length, { timeout: 10_000 }).toBe(1);
  receiver.answer = () => 200;
  process.kill(doomed.service.pidOf("gateway"), "SIGKILL");
  const db = openDatabase({ url: doomed.service.databaseUrl }, silentLog, 1);
  // Extends the lease beyond this test, so that its expiry cannot release the queue.
  await sql`update job_queues set leased_until = now() + interval '1 hour' where claim is not null`.execute(db.sql);
  await db.close();
  await expect.poll(() => receiver.arrivals.length, { timeout: 30_000 }).toBe(2);
  expect(receiver.arrivals[1]?.eventId).toBe(receiver.arrivals[0]?.eventId);
});

test("a gateway in an endless loop is replaced and ends no session", { timeout: 180_000 }, async () => {
  const session = await doomed.create();
  const pid = doomed.service.pidOf("gateway");
  await runForEver(pid);
  await expect
    .poll(() => doomed.service.output(), { timeout: 90_000 })
    .toContain("gateway did not respond and was killed");
  await expectLive(session);
  expect(doomed.service.pidOf("gateway")).not.toBe(pid);
  await doomed.destroy(session);
});

test("a control process that is stopped for 30 s is replaced, and its sessions end as lost", {
  timeout: 120_000,
}, async () => {
  const session = await doomed.create();
  const pid = doomed.service.pidOf("control");
  process.kill(pid, "SIGSTOP");
  await expect.poll(async () => (await entryOf(doomed, session))?.endedReason, { timeout: 60_000 }).toBe("worker_lost");
  expect(doomed.service.pidOf("control")).not.toBe(pid);
  await doomed.createEventually();
});

/** Blocks the event loop of a process forever. */
async function runForEver(pid: number): Promise<void> {
  const before = doomed.service.output().length;
  process.kill(pid, "SIGUSR1");
  const address = () => /Debugger listening on (ws:\S+)/.exec(doomed.service.output().slice(before))?.[1];
  await expect.poll(address, { timeout: 10_000 }).toBeDefined();
  const inspector = new WebSocket(address() ?? "");
  await new Promise((resolve) => inspector.once("open", resolve));
  inspector.on("error", () => undefined);
  inspector.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: "for (;;);" } }));
}
