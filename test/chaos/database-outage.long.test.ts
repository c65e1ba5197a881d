import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { descendantsOf } from "../support/process-list.ts";

/** Duration of the outage in milliseconds, longer than a lease. */
const outage = 30_000;

/** Number of live sessions. During the outage one of them expires and another crashes. */
const sessions = 20;

/** Minimum timeout of a session in seconds, and the milliseconds of the outage until a session expires. */
const shortest = 60;
const expiresAfter = 15_000;

let site: FixtureSite;
let deployment: Deployment;

beforeAll(async () => {
  site = await new FixtureSite().start();
  const workerEnv = { EGRESS_ALLOW: site.host, CLOSE_AT_CPU: "100", WARM_BROWSERS: "0" };
  deployment = await Deployment.start({ gateways: [{}], workers: 1, slots: sessions, workerEnv });
}, 120_000);

afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  await site?.stop();
}, 120_000);

const rest: Deployment["gateways"][number]["rest"] = (...call) => deployment.gateway(0).rest(...call);

async function create(): Promise<string> {
  return (await createUntil()).session;
}

async function createUntil(body: object = {}): Promise<{ session: string; expiresAt: number }> {
  const { status, body: created } = await rest("/v1/sessions", body);
  expect([status, created.detail]).toEqual([201, undefined]);
  return { session: `/v1/sessions/${created.id}`, expiresAt: Date.parse(created.expires_at) };
}

async function drive(session: string): Promise<number> {
  return (await rest(`${session}/navigate`, { url: site.url("/plain.html") })).status;
}

/** Returns the pids of the worker's browsers. */
function browsers(): number[] {
  const { pid = 0 } = deployment.worker(0);
  return descendantsOf(pid)
    .filter(({ parent, command }) => parent === pid && /chrom/.test(command))
    .map((found) => found.pid);
}

/** Signals every process of the server, because child processes keep running when only the postmaster is stopped. */
function signalPostgres(signal: NodeJS.Signals): void {
  const { pid } = deployment.postgres;
  const all = [pid, ...descendantsOf(pid).map((found) => found.pid)];
  for (const each of signal === "SIGCONT" ? all.reverse() : all) process.kill(each, signal);
}

async function readEnds(ids: readonly string[]) {
  const client = new pg.Client({ connectionString: deployment.postgres.url });
  await client.connect();
  try {
    const { rows } = await client.query<{ id: string; ended_at: Date; ended_reason: string; events: number }>(
      `select s.id, s.ended_at, s.ended_reason, (select count(*)::int from events e
         where e.subject = s.id and e.type in ('session.completed', 'session.failed')) as events
       from sessions s where s.id = any($1) order by s.id`,
      [ids],
    );
    return rows;
  } finally {
    await client.end();
  }
}

const idOf = (session: string) => session.replace("/v1/sessions/", "");

const outages = [
  ["hangs", async () => signalPostgres("SIGSTOP"), async () => signalPostgres("SIGCONT")],
  ["is shut down", () => deployment.postgres.stop(), () => deployment.postgres.start()],
] as const;

describe.each(outages)("PostgreSQL that %s for longer than a lease", (_, takeAway, bringBack) => {
  test("ends no session, and the ends during the outage are recorded with their times and reasons", {
    timeout: 240_000,
  }, async () => {
    const { session: expiring, expiresAt } = await createUntil({ timeout_seconds: shortest });
    const others = browsers();
    const doomed = await create();
    const [browser = 0] = browsers().filter((pid) => !others.includes(pid));
    const steady: string[] = [];
    for (let left = sessions - 2; left > 0; left -= 1) steady.push(await create());
    await delay(Math.max(0, expiresAt - expiresAfter - Date.now()));
    // Caches the caller and the sessions, which are valid for a minute.
    for (const session of [doomed, expiring, ...steady]) expect(await drive(session)).toBe(200);
    const awayAt = Date.now();
    await takeAway();
    process.kill(browser, "SIGKILL");
    const crashedAt = Date.now();
    expect(await rest("/v1/sessions?limit=1")).toMatchObject({
      status: 500,
      body: { detail: expect.stringMatching(/database/) },
    });
    expect(await Promise.all(steady.map(drive))).toEqual(steady.map(() => 200));
    await delay(Math.max(0, awayAt + outage - Date.now()));
    expect(await Promise.all(steady.map(drive))).toEqual(steady.map(() => 200));
    await bringBack();

    const ids = [doomed, expiring].map(idOf).sort();
    const areRecorded = async () => (await readEnds(ids)).every(({ ended_at: at }) => at !== null);
    await expect.poll(areRecorded, { timeout: 20_000, interval: 250 }).toBe(true);
    const ends = new Map((await readEnds(ids)).map((row) => [row.id, row]));
    expect(ends.get(idOf(doomed))).toMatchObject({ ended_reason: "crashed", events: 1 });
    expect(ends.get(idOf(expiring))).toMatchObject({ ended_reason: "expired", events: 1 });
    expect(Math.abs(Number(ends.get(idOf(doomed))?.ended_at) - crashedAt)).toBeLessThan(5_000);
    expect(Math.abs(Number(ends.get(idOf(expiring))?.ended_at) - expiresAt)).toBeLessThan(5_000);
    // Sweeps that would end the sessions have run by now.
    await delay(3_000);
    for (const session of steady) {
      expect(await drive(session)).toBe(200);
      expect((await rest(session, undefined, { method: "DELETE" })).status).toBe(204);
    }
    expect((await readEnds(steady.map(idOf))).map(({ ended_reason: why }) => why)).toEqual(
      steady.map(() => "destroyed"),
    );
  });
});

test("a worker that reaches no control process for longer than its lease ends its browsers", {
  timeout: 60_000,
}, async () => {
  await create();
  expect(browsers()).toHaveLength(1);
  deployment.control(0).signal("SIGSTOP");
  await expect.poll(browsers, { timeout: 20_000 }).toEqual([]);
  const { pid = 0 } = deployment.worker(0);
  expect(readdirSync(`/proc/${pid}/task`).length).toBeGreaterThan(0);
  deployment.control(0).signal("SIGCONT");
  await expect.poll(async () => (await rest("/v1/sessions?status=live")).body.data, { timeout: 20_000 }).toEqual([]);
});
