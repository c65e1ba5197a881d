import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createRedisStreamSlots } from "../../src/limits/redis-stream-slots.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { createRedis } from "../../src/platform/redis/redis.ts";
import { silentLog } from "../support/database.ts";
import type { DeployedGateway, Deployment } from "../support/deployment.ts";
import { longTest } from "../support/long-test.ts";
import type { RedisSentinels } from "../support/redis-sentinels.ts";
import { restClient } from "../support/rest.ts";

const soon = { timeout: 30_000, interval: 100 };

/** Two gateways, with a worker, whose Redis is that of the sentinels. This process trusts their certificate. */
export function redisFailoverTests(sceneOf: () => { deployment: Deployment; sentinels: RedisSentinels }): void {
  let deployment: Deployment;
  let sentinels: RedisSentinels;
  let one: DeployedGateway;
  let other: DeployedGateway;
  let limitedKey: string;

  beforeAll(async () => {
    ({ deployment, sentinels } = sceneOf());
    [one, other] = [deployment.gateway(0), deployment.gateway(1)];
    limitedKey = await deployment.createKey("limited", "free");
  });

  /** Draws from the bucket of the limited key, and returns the bucket's size and what is left. */
  async function draw({ url }: DeployedGateway): Promise<{ limit: number; remaining: number }> {
    const { headers } = await restClient({ url, key: limitedKey })("/v1/sessions");
    return { limit: Number(headers.get("x-ratelimit-limit")), remaining: Number(headers.get("x-ratelimit-remaining")) };
  }

  /** Returns whether both gateways draw from the same bucket. */
  async function shareBucket(): Promise<boolean> {
    const drawn = [];
    for (const gateway of [one, one, one, one, one, one, other]) drawn.push(await draw(gateway));
    const [first, last] = [drawn.at(0), drawn.at(-1)];
    return drawn.every(({ limit }) => limit === 60) && (last?.remaining ?? 60) < (first?.remaining ?? 0) - 3;
  }

  /** Expects that a key revoked through one gateway is refused by the other before its cache entry expires. */
  async function expectBus(): Promise<void> {
    const { body: made } = await one.rest("/v1/api-keys", { name: "revoked" });
    const rest = restClient({ url: other.url, key: made.key });
    const cachedAt = performance.now();
    expect((await rest("/v1/sessions")).status).toBe(200);
    expect((await one.rest(`/v1/api-keys/${made.id}`, undefined, { method: "DELETE" })).status).toBe(204);
    await expect.poll(async () => (await rest("/v1/sessions")).status, { interval: 20 }).toBe(401);
    expect(performance.now() - cachedAt).toBeLessThan(4_000);
  }

  async function accountOf(session: string): Promise<string> {
    const db = openDatabase({ url: deployment.databaseUrl }, silentLog, 1);
    onTestFinished(() => db.close());
    const { account_id } = await db.sql
      .selectFrom("sessions")
      .select("account_id")
      .where("id", "=", session)
      .executeTakeFirstOrThrow();
    return account_id;
  }

  /** Returns whether each process uses Redis. */
  async function redisUp(): Promise<boolean[]> {
    const texts = await Promise.all([one, other, deployment.control(0)].map((each) => each.metrics()));
    return texts.map((text) => /^pilothouse_redis_up\{[^}]*\} 1$/m.test(text));
  }

  /** Creates a session through one gateway, ends it through the other, and returns the events that the latter streams. */
  async function runSession(): Promise<string> {
    const { status, body } = await one.rest("/v1/sessions", {});
    expect([status, body.detail]).toEqual([201, undefined]);
    const headers = { authorization: `Bearer ${deployment.key}` };
    const events = await fetch(`${other.url}/v1/sessions/${body.id}/events`, { headers });
    expect((await one.rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" })).status).toBe(204);
    return await events.text();
  }

  const outages = () => deployment.gateways.map(({ output }) => output.match(/Redis is down/g)?.length);

  test("gateways survive the loss of the primary, and share limits, streams and messages through a replica", async () => {
    await expect.poll(redisUp, soon).toEqual([true, true, true]);
    await expect.poll(shareBucket, soon).toBe(true);
    await expectBus();
    const kept = await one.rest("/v1/sessions", {});
    const owner = await accountOf(kept.body.id);
    const stream = new AbortController();
    const headers = { authorization: `Bearer ${deployment.key}` };
    const { signal } = stream;
    const events = await fetch(`${one.url}/v1/sessions/${kept.body.id}/events`, { headers, signal });
    expect(events.status).toBe(200);

    const first = await sentinels.primary();
    await sentinels.killPrimary();
    await expect.poll(redisUp, soon).toEqual([false, false, false]);
    expect((await draw(one)).limit).toBe(30);
    expect(await runSession()).toContain("event: session.completed");

    await expect.poll(redisUp, soon).toEqual([true, true, true]);
    expect(await sentinels.primary()).not.toBe(first);
    await expect.poll(shareBucket, soon).toBe(true);
    await expectBus();
    expect(await runSession()).toContain("event: session.completed");
    // A gateway in this process, which sees the open stream of another.
    const redis = createRedis({ url: sentinels.url, log: silentLog, registry: createMetrics(), timeoutMs: 10_000 });
    onTestFinished(() => redis.stop());
    await redis.start();
    const slots = createRedisStreamSlots({ redis, clock: systemClock, log: silentLog });
    const isFree = async () => {
      const slot = await slots.take(owner, 1);
      if (slot.isGranted) slot.release();
      return slot.isGranted;
    };
    await expect.poll(isFree, soon).toBe(false);
    stream.abort();
    await expect.poll(isFree, soon).toBe(true);
    expect(outages()).toEqual([1, 1]);
  }, 180_000);

  longTest(
    "gateways follow a primary that becomes a replica while it runs",
    async () => {
      const before = await sentinels.primary();
      await sentinels.promoteReplica();
      await expect.poll(() => sentinels.primary(), soon).not.toBe(before);
      await expect
        .poll(async () => [outages(), await redisUp()], soon)
        .toEqual([
          [2, 2],
          [true, true, true],
        ]);
      await expect.poll(shareBucket, soon).toBe(true);
      await expectBus();
    },
    180_000,
  );
}
