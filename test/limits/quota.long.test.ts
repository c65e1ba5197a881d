import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import { Deployment } from "../support/deployment.ts";
import { restClient } from "../support/rest.ts";

let deployment: Deployment;
let db: Database;

beforeAll(async () => {
  deployment = await Deployment.start({ workers: 2, slots: 6, workerEnv: { LOG_LEVEL: "debug" } });
  db = openDatabase({ url: deployment.postgres.url }, silentLog, 2);
}, 180_000);
afterAll(async () => {
  await db?.close();
  await deployment?.[Symbol.asyncDispose]();
}, 120_000);

const minutes = 11;

/** Returns the time of the last heartbeat that a worker logged for a session. */
function lastHeartbeat(output: string, sessionId: string): number {
  const lines = output.split("\n").filter((line) => line.includes("accepted a heartbeat") && line.includes(sessionId));
  return JSON.parse(lines.at(-1) ?? "{}").time;
}

const span = (from: string, to: string): number => Date.parse(to) - Date.parse(from);

test("ten sessions share 11 minutes even if a gateway and a worker are killed", async () => {
  const rests = [0, 1].map((index) => restClient({ url: deployment.gateway(index).url, key: deployment.key }));
  const [here, there] = rests;
  if (!here || !there) throw new Error("there are two gateways");
  const made = await Promise.all(
    Array.from({ length: 10 }, (_, index) => (index % 2 ? here : there)("/v1/sessions", {})),
  );
  expect(made.map(({ status, body }) => [status, body.detail])).toEqual(Array(10).fill([201, undefined]));
  const given = ["--limit", "session_minutes", "--value", String(minutes), "--until", "1h"];
  await deployment.admin("override", "--account", "deployment", ...given);

  // After a third of the time, sessions of the killed worker stop consuming minutes, so the others last longer.
  await expect
    .poll(async () => (await here("/v1/account/usage")).body.days.at(-1).session_seconds, {
      timeout: 120_000,
      interval: 500,
    })
    .toBeGreaterThan(220);
  const worker = deployment.worker(1);
  await Promise.all([deployment.gateway(0).kill(), worker.kill()]);

  const list = async (status: string) => (await there(`/v1/sessions?status=${status}&limit=100`)).body.data;
  await expect.poll(async () => (await list("live")).length, { timeout: 240_000, interval: 500 }).toBe(0);
  const [lost, ended] = [await list("errored"), await list("destroyed")];
  expect(lost.length + ended.length).toBe(10);
  expect(lost.length).toBeGreaterThan(0);
  for (const session of lost) {
    expect(session.ended_reason).toBe("worker_lost");
    const metered = span(session.live_at, session.ended_at);
    const logged = lastHeartbeat(worker.output, session.id) - Date.parse(session.live_at);
    console.info(`a session of the killed worker is metered ${metered} ms, its log says ${logged}`);
    expect(Math.abs(metered - logged)).toBeLessThan(2_000);
  }
  expect(new Set(ended.map(({ ended_reason }: { ended_reason: string }) => ended_reason))).toEqual(new Set(["quota"]));
  const used = [...lost, ...ended].reduce((sum, { live_at, ended_at }) => sum + span(live_at, ended_at), 0);
  const over = used - minutes * 60_000;
  console.info(`${lost.length} lost, ${ended.length} ended by quota, which was exceeded by ${over} ms of all together`);
  expect(over).toBeGreaterThanOrEqual(0);
  expect(over).toBeLessThan(10_000 * ended.length);
  const { body } = await there("/v1/account/usage");
  const metered = body.days.reduce((sum: number, day: { session_seconds: number }) => sum + day.session_seconds, 0);
  expect(Math.abs(metered - used / 1_000)).toBeLessThan(2);
  const events = db.sql.selectFrom("events").select("type").where("type", "like", "quota.%").orderBy("position");
  expect((await events.execute()).map(({ type }) => type)).toEqual(["quota.warning_80pct", "quota.exceeded"]);
}, 480_000);
