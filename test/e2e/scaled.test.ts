import { afterAll, beforeAll, expect, test } from "vitest";
import { createApiKeys } from "../../src/api-keys/api-keys.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { type Database, openDatabase } from "../../src/platform/database.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createRedis } from "../../src/platform/redis.ts";
import { createRedisBus } from "../../src/platform/redis-bus.ts";
import { CertificateAuthority, fleetTlsVariables } from "../support/certificates.ts";
import { silentLog } from "../support/database.ts";
import { type DeployedGateway, Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { restClient } from "../support/rest.ts";

let authority: CertificateAuthority;
let site: FixtureSite;
let deployment: Deployment;
let db: Database;
let one: DeployedGateway;
let other: DeployedGateway;
let jobs: DeployedGateway;

beforeAll(async () => {
  authority = new CertificateAuthority();
  site = await new FixtureSite().start();
  deployment = await Deployment.start({
    gateways: [{ ROLE: "api" }, { ROLE: "api" }, { ROLE: "jobs" }],
    workers: 2,
    slots: 2,
    gatewayEnv: fleetTlsVariables(authority.issue("gateway.test")),
    workerEnv: { ...fleetTlsVariables(authority.issue("worker.test")), EGRESS_ALLOW: site.host },
  });
  one = deployment.gateway(0);
  other = deployment.gateway(1);
  jobs = deployment.gateway(2);
  db = openDatabase({ url: deployment.postgres.url }, silentLog, 2);
}, 120_000);

afterAll(async () => {
  await db?.close();
  await deployment?.[Symbol.asyncDispose]();
  await site?.stop();
  authority?.[Symbol.dispose]();
}, 120_000);

/** Creates a session, and gives its path. */
async function create(gateway: DeployedGateway): Promise<string> {
  const { status, body } = await gateway.rest("/v1/sessions", {});
  expect([status, body.status, body.detail]).toEqual([201, "live", undefined]);
  return `/v1/sessions/${body.id}`;
}

async function destroy(gateway: DeployedGateway, session: string): Promise<number> {
  return (await gateway.rest(session, undefined, { method: "DELETE" })).status;
}

/** Drives a session, and gives the title of its page. */
async function drive(gateway: DeployedGateway, session: string): Promise<string> {
  const { status, body } = await gateway.rest(`${session}/navigate`, { url: site.url("/plain.html") });
  expect([status, body.detail]).toEqual([200, undefined]);
  return body.title;
}

test("a session of one gateway is driven, listed, watched and ended through the other", async () => {
  const session = await create(one);
  const watching = new AbortController();
  const { url, rest } = other;
  const headers = { authorization: `Bearer ${deployment.key}` };
  const events = await fetch(`${url}${session}/events`, { headers, signal: watching.signal });
  expect(events.status).toBe(200);
  expect(await drive(other, session)).toBe(await drive(one, session));
  const { body: list } = await rest("/v1/sessions?status=live");
  expect(list.data.map(({ id }: { id: string }) => `/v1/sessions/${id}`)).toContain(session);
  expect(await destroy(other, session)).toBe(204);
  for (const gateway of [one, other]) {
    const { status, body } = await gateway.rest(`${session}/navigate`, { url: site.url("/plain.html") });
    expect([status, body.ended_reason]).toEqual([410, "destroyed"]);
  }
  let seen = "";
  for await (const text of events.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    seen += text;
    if (seen.includes("session.completed")) break;
  }
  watching.abort();
  expect(seen).toContain("event: session.completed");
}, 60_000);

test("a key revoked on one gateway is refused on another before its cache is old", async () => {
  const key = await deployment.createKey("revoked", "free");
  const redis = createRedis({ url: deployment.redis.url, log: silentLog, registry: createMetrics().registry });
  const ids = createIds(systemClock);
  const keys = createApiKeys({ db, bus: createRedisBus(redis), ids, clock: systemClock });
  await redis.start();
  const rest = restClient({ url: other.url, key });
  const cachedAt = performance.now();
  expect((await rest("/v1/sessions")).status).toBe(200);
  const { keyId } = await keys.authenticate(`Bearer ${key}`);
  expect(await db.transaction((tx) => keys.revoke(tx, keyId))).toBe(true);
  await expect.poll(async () => (await rest("/v1/sessions")).body.type, { interval: 20 }).toContain("revoked-key");
  expect(performance.now() - cachedAt).toBeLessThan(5_000);
  redis.stop();
});

test("what is drawn on one gateway is drawn on the other", async () => {
  const key = await deployment.createKey("limited", "free");
  const left = async ({ url }: DeployedGateway) => {
    const { headers } = await restClient({ url, key })("/v1/sessions");
    return { limit: Number(headers.get("x-ratelimit-limit")), remaining: Number(headers.get("x-ratelimit-remaining")) };
  };
  const drawOnBoth = async () => {
    let drawn = await left(one);
    for (let count = 0; count < 8; count += 1) drawn = await left(one);
    const { limit, remaining } = await left(other);
    // One token flows in each second meanwhile. A Redis that was slow for a moment shows another limit.
    return drawn.limit === 60 && limit === 60 && Math.abs(drawn.remaining - remaining) <= 2;
  };
  await expect.poll(drawOnBoth, { timeout: 20_000, interval: 1_500 }).toBe(true);
}, 30_000);

test("a process of jobs alone opens no public port, and is the one that does them", async () => {
  await expect(fetch(jobs.url)).rejects.toThrow();
  await expect(fetch(`http://${jobs.grpcAddress}`)).rejects.toThrow();
  const sweptAt = async () => {
    const { swept_at } = await db.sql.selectFrom("lease_sweep").select("swept_at").executeTakeFirstOrThrow();
    return swept_at.getTime();
  };
  await jobs.stop();
  const last = await sweptAt();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(await sweptAt()).toBe(last);
  await jobs.start();
  await expect.poll(sweptAt, { timeout: 10_000 }).toBeGreaterThan(last);
}, 60_000);

test("sessions outlive a gateway that is killed, and then another that is restarted in order", async () => {
  const sessions = [await create(one), await create(other)];
  await one.kill();
  const killedAt = await databaseTime();
  // Leases last for 8 s: one that ends later than that after the kill was renewed by another gateway.
  const renewed = async () => {
    const rows = await db.sql.selectFrom("workers").select("lease_until").where("lost_at", "is", null).execute();
    return rows.map(({ lease_until }) => lease_until.getTime() > killedAt + 8_000);
  };
  await expect.poll(renewed, { timeout: 8_000 }).toEqual([true, true]);
  for (const session of sessions) expect(await drive(other, session)).toBe("Plain");
  await one.start();
  await other.stop();
  for (const session of sessions) expect(await drive(one, session)).toBe("Plain");
  await other.start();
  for (const session of sessions) expect(await destroy(other, session)).toBe(204);
}, 90_000);

async function databaseTime(): Promise<number> {
  const [row] = await db.named<{ now: Date }>({ name: "test-now", text: "select clock_timestamp() as now" }, []);
  return row?.now.getTime() ?? 0;
}
