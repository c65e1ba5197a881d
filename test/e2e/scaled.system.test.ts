import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseToken } from "../../src/identity/api-keys/token.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { scaledClientTests } from "../cdp-proxy/scaled-clients.ts";
import { SecretMount, tlsRenewalTest } from "../fleet/tls-renewal.ts";
import { controlTests } from "../sessions/control/control.ts";
import { CertificateAuthority, fleetTlsVariables } from "../support/certificates.ts";
import { silentLog } from "../support/database.ts";
import { type DeployedGateway, Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { InputSite } from "../support/input-site.ts";
import { longDescribe } from "../support/long-test.ts";
import { restClient } from "../support/rest.ts";
import { countOpenStreams, openEverywhere } from "./support/open-streams.ts";

const stack = new DisposableStack();
let authority: CertificateAuthority;
let mounts: Record<"service" | "worker", SecretMount>;
let workerEnv: Record<string, string>;
let site: FixtureSite;
let inputSite: InputSite;
let deployment: Deployment;
let db: Database;
let one: DeployedGateway;
let other: DeployedGateway;
let jobs: DeployedGateway;

beforeAll(async () => {
  authority = stack.use(new CertificateAuthority());
  mounts = { service: stack.use(new SecretMount()), worker: stack.use(new SecretMount()) };
  for (const name of ["service", "worker"] as const) mounts[name].update(authority.issue(`${name}.test`));
  [site, inputSite] = await Promise.all([new FixtureSite().start(), InputSite.start()]);
  workerEnv = {
    ...fleetTlsVariables(mounts.worker.files),
    EGRESS_ALLOW: `${site.host},${inputSite.host}`,
    DRAIN_SECONDS: "60",
    CLOSE_AT_CPU: "100",
    WARM_BROWSERS: "0",
  };
  deployment = await Deployment.start({
    gateways: [{ ROLE: "api" }, { ROLE: "api" }, { ROLE: "jobs" }],
    controls: 2,
    workers: 2,
    slots: 2,
    gatewayEnv: fleetTlsVariables(mounts.service.files),
    workerEnv,
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
  await inputSite?.[Symbol.asyncDispose]();
  stack.dispose();
}, 120_000);

describe("control", () => controlTests(() => ({ deployment, site: inputSite })));
// Has long rows, see test/support/long-test.ts.
describe("CDP clients", () => scaledClientTests(() => ({ deployment, site })));

/** Creates a session and returns its path. */
async function create(gateway: DeployedGateway): Promise<string> {
  const { status, body } = await gateway.rest("/v1/sessions", {});
  expect([status, body.status, body.detail]).toEqual([201, "live", undefined]);
  return `/v1/sessions/${body.id}`;
}

async function destroy(gateway: DeployedGateway, session: string): Promise<number> {
  return (await gateway.rest(session, undefined, { method: "DELETE" })).status;
}

/** Navigates a session and returns the title of its page. */
async function drive(gateway: DeployedGateway, session: string): Promise<string> {
  const { status, body } = await gateway.rest(`${session}/navigate`, { url: site.url("/plain.html") });
  expect([status, body.detail]).toEqual([200, undefined]);
  return body.title;
}

async function watch({ url }: DeployedGateway, session: string): Promise<Response> {
  const headers = { authorization: `Bearer ${deployment.key}` };
  const events = await fetch(`${url}${session}/events`, { headers, signal: AbortSignal.timeout(30_000) });
  expect(events.status).toBe(200);
  return events;
}

/** Reads a stream until it contains a word, then closes the stream. */
async function readUntil({ body }: Response, word: string): Promise<string> {
  let seen = "";
  for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    seen += text;
    if (seen.includes(word)) break;
  }
  return seen;
}

test("a session of one gateway can be driven, listed, watched and ended through another one", async () => {
  const session = await create(one);
  const events = await watch(other, session);
  expect(await drive(other, session)).toBe(await drive(one, session));
  const { body: list } = await other.rest("/v1/sessions?status=live");
  expect(list.data.map(({ id }: { id: string }) => `/v1/sessions/${id}`)).toContain(session);
  expect(await destroy(other, session)).toBe(204);
  for (const gateway of [one, other]) {
    const { status, body } = await gateway.rest(`${session}/navigate`, { url: site.url("/plain.html") });
    expect([status, body.ended_reason]).toEqual([410, "destroyed"]);
  }
  expect(await readUntil(events, "session.completed")).toContain("event: session.completed");
}, 60_000);

test("a key revoked on one gateway is refused on another before its cache entry expires", async () => {
  const { rest: owner } = deployment.gateway(0);
  const { body: made } = await owner("/v1/api-keys", { name: "to be revoked" });
  const rest = restClient({ url: other.url, key: made.key });
  const cachedAt = performance.now();
  expect((await rest("/v1/sessions")).status).toBe(200);
  expect((await owner(`/v1/api-keys/${made.id}`, undefined, { method: "DELETE" })).status).toBe(204);
  await expect.poll(async () => (await rest("/v1/sessions")).body.type, { interval: 20 }).toContain("revoked-key");
  expect(performance.now() - cachedAt).toBeLessThan(5_000);
});

/** Changes in the database that end a key without a notification, by the slug of the closed streams. */
const ends: [slug: string, change: string][] = [
  ["revoked-key", "revoked_at = now()"],
  ["expired-key", "expires_at = now() + interval '1 second'"],
  ["forbidden", "scopes = '{profiles:read}'"],
];

test("streams on every protocol of every gateway end within 5 s of each change", async () => {
  const over = new AbortController();
  const doomed = await Promise.all(
    ends.map(async ([slug, change]) => {
      const key = await deployment.createKey("deployment");
      const { body: session } = await restClient({ url: one.url, key })("/v1/sessions", {});
      const opened = await Promise.all(
        [one, other].map(({ url, grpcAddress }) =>
          openEverywhere({ url, grpcAddress, key, sessionId: session.id, signal: over.signal }),
        ),
      );
      return { slug, change, keyId: parseToken(key)?.id ?? "", session: `/v1/sessions/${session.id}`, opened };
    }),
  );
  for (const [index, gateway] of [one, other].entries()) {
    const count = doomed.reduce((sum, { opened }) => sum + (opened[index]?.length ?? 0), 0);
    await expect.poll(() => countOpenStreams(gateway.internalUrl)).toBe(count);
  }
  const changed = performance.now();
  for (const { change, keyId } of doomed)
    await sql`update api_keys set ${sql.raw(change)} where id = ${keyId}`.execute(db.sql);
  const seen = await Promise.all(
    doomed.flatMap(({ slug: expected, opened }) =>
      opened.flat().map(async ({ transportName, ended }) => {
        const slug = await ended;
        return { transportName, expected, slug, late: performance.now() - changed > 5_000 };
      }),
    ),
  );
  over.abort();
  expect(seen.filter(({ slug, expected, late }) => slug !== expected || late)).toEqual([]);
  for (const { internalUrl } of [one, other]) await expect.poll(() => countOpenStreams(internalUrl)).toBe(0);
  for (const { session } of doomed) await destroy(one, session);
}, 60_000);

test("gateways share rate limit buckets", async () => {
  const key = await deployment.createKey("limited", "free");
  const left = async ({ url }: DeployedGateway) => {
    const { headers } = await restClient({ url, key })("/v1/sessions");
    return { limit: Number(headers.get("x-ratelimit-limit")), remaining: Number(headers.get("x-ratelimit-remaining")) };
  };
  const drawOnBoth = async () => {
    let drawn = await left(one);
    for (let count = 0; count < 8; count += 1) drawn = await left(one);
    const { limit, remaining } = await left(other);
    // One token is added each second. A temporarily slow Redis shows in a different limit.
    return drawn.limit === 60 && limit === 60 && Math.abs(drawn.remaining - remaining) <= 2;
  };
  await expect.poll(drawOnBoth, { timeout: 20_000, interval: 1_500 }).toBe(true);
}, 30_000);

test("every gateway continues to serve requests and events while Redis is down", async () => {
  const session = await create(one);
  await deployment.redis.kill();
  const events = await watch(other, session);
  expect(await drive(other, session)).toBe("Plain");
  expect(await destroy(one, session)).toBe(204);
  // Without the bus, events are found by polling the table once a second.
  expect(await readUntil(events, "session.completed")).toContain("event: session.completed");
  expect((await other.rest(`${session}/navigate`, { url: site.url("/plain.html") })).status).toBe(410);
  expect(await one.metrics()).toContain('\npilothouse_redis_up{role="gateway"} 0\n');
  await deployment.redis.restart();
  for (const gateway of deployment.gateways) {
    await expect
      .poll(() => gateway.metrics(), { timeout: 10_000 })
      .toContain('\npilothouse_redis_up{role="gateway"} 1\n');
    const said = (what: RegExp) => gateway.output.match(what)?.length ?? 0;
    expect(said(/Redis is down/g)).toBeGreaterThan(0);
    await expect.poll(() => said(/Redis is up again/g) - said(/Redis is down/g)).toBe(0);
  }
}, 60_000);

test("a gateway with ROLE=jobs opens no public port", async () => {
  await expect(fetch(jobs.url)).rejects.toThrow();
  await expect(fetch(`http://${jobs.grpcAddress}`)).rejects.toThrow();
});

test("sessions survive the kill of a control process while another one runs", async () => {
  const sessions = [await create(one), await create(other)];
  await deployment.control(0).kill();
  const killedAt = await databaseTime();
  // A lease lasts 8 s. A later expiry proves that the other control process has renewed the lease.
  const renewed = async () => {
    const rows = await db.sql
      .selectFrom("worker_leases")
      .select(["lease_until", "lost_at"])
      .orderBy("worker_id")
      .execute();
    return rows.map(({ lease_until, lost_at }) => lost_at === null && lease_until.getTime() > killedAt + 8_000);
  };
  await expect.poll(renewed, { timeout: 8_000 }).toEqual([true, true]);
  const swept = db.sql.selectFrom("lease_sweep").select("swept_at");
  const sweptAt = async () => (await swept.executeTakeFirstOrThrow()).swept_at.getTime();
  await expect.poll(sweptAt, { timeout: 5_000 }).toBeGreaterThan(killedAt);
  for (const session of sessions) {
    expect(await drive(one, session)).toBe("Plain");
    expect(await destroy(one, session)).toBe(204);
  }
  await deployment.control(0).start();
}, 90_000);

test("a stopping worker accepts no new sessions, and exits after its last session", async () => {
  const session = await create(one);
  const [, id] = session.split("/v1/sessions/");
  const { worker_id: holder } = await db.sql
    .selectFrom("sessions")
    .select("worker_id")
    .where("id", "=", id ?? "")
    .executeTakeFirstOrThrow();
  const index = deployment.workers.findIndex(({ output }) => output.includes(holder));
  const worker = deployment.worker(index);
  const ended = worker.stop();
  await expect.poll(() => worker.isReady(), { timeout: 10_000 }).toBe(false);
  // The new sessions fill all slots of the other worker.
  const others = [await create(other), await create(other)];
  const placed = db.sql.selectFrom("sessions").select("id").where("worker_id", "=", holder);
  expect(await placed.where("status", "=", "live").execute()).toEqual([{ id }]);
  expect(await drive(other, session)).toBe("Plain");
  expect(await destroy(other, session)).toBe(204);
  await ended;
  expect(worker.exitCode).toBe(0);
  for (const each of others) expect(await destroy(one, each)).toBe(204);
}, 60_000);

longDescribe("certificates", () => tlsRenewalTest(() => ({ deployment, site, mounts, authority, workerEnv })));

async function databaseTime(): Promise<number> {
  const [row] = await db.named<{ now: Date }>({ name: "test-now", text: "select clock_timestamp() as now" }, []);
  return row?.now.getTime() ?? 0;
}
