import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createRedisStreamSlots } from "../../src/limits/redis-stream-slots.ts";
import { createStreamSlots, type StreamSlot, type StreamSlots } from "../../src/limits/stream-slots.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createRedis } from "../../src/platform/redis/redis.ts";
import { silentLog } from "../support/database.ts";
import { RedisServer } from "../support/redis-server.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

const soon = { timeout: 20_000, interval: 20 };

/** Starts the slots of one gateway. */
async function connect(life = 600_000) {
  const redis = createRedis({ url: server.url, log: silentLog, registry: createMetrics(), timeoutMs: 10_000 });
  const seats = createRedisStreamSlots({ redis, clock: systemClock, log: silentLog, life });
  const die = async () => {
    await seats.stop?.();
    redis.stop();
  };
  onTestFinished(die);
  await redis.start();
  await seats.start?.();
  return { seats, redis, die };
}

let owners = 0;

/** Returns an owner without slots. */
function fresh(): string {
  owners += 1;
  return `acc_${owners}`;
}

const kinds: [kind: string, make: () => Promise<[StreamSlots, StreamSlots]>][] = [
  [
    "of a lone gateway",
    async () => {
      const seats = createStreamSlots();
      return [seats, seats];
    },
  ],
  ["of two gateways", async () => [(await connect()).seats, (await connect()).seats]],
];

function release(seat: StreamSlot): void {
  if (seat.isGranted) seat.release();
}

describe.each(kinds)("slots %s", (_kind, make) => {
  test("are granted up to the limit, and again after a release", async () => {
    const [one, other] = await make();
    const owner = fresh();
    const first = await one.take(owner, 3);
    const more = [await other.take(owner, 3), await one.take(owner, 3)];
    expect([first, ...more].map(({ isGranted }) => isGranted)).toEqual([true, true, true]);
    expect(await one.take(owner, 3)).toEqual({ isGranted: false, taken: 3 });
    expect(await other.take(owner, 3)).toEqual({ isGranted: false, taken: 3 });
    release(first);
    await expect.poll(() => other.take(owner, 3), soon).toMatchObject({ isGranted: true });
    expect(await one.take(owner, 3)).toEqual({ isGranted: false, taken: 3 });
  });

  test("never exceed the limit under concurrent requests", async () => {
    const gateways = await make();
    const owner = fresh();
    const asked = Array.from({ length: 40 }, (_, index) => gateways[index % 2]?.take(owner, 16));
    const granted = (await Promise.all(asked)).filter((seat) => seat?.isGranted);
    expect(granted).toHaveLength(16);
  });

  test("are counted per owner", async () => {
    const [one, other] = await make();
    expect(await one.take(fresh(), 1)).toMatchObject({ isGranted: true });
    expect(await other.take(fresh(), 1)).toMatchObject({ isGranted: true });
  });
});

test("slots of a gateway last while it renews them and expire after it has died", async () => {
  const life = 2_500;
  const [one, other] = [await connect(life), await connect(life)];
  const owner = fresh();
  expect(await one.seats.take(owner, 1)).toMatchObject({ isGranted: true });
  // Only waiting proves that the slots outlast their lifetime.
  await sleep(1.3 * life);
  expect(await other.seats.take(owner, 1)).toEqual({ isGranted: false, taken: 1 });
  await one.die();
  await expect.poll(() => other.seats.take(owner, 1), soon).toMatchObject({ isGranted: true });
}, 60_000);

test("a slot that is not renewed expires after 10 seconds", async () => {
  const redis = createRedis({ url: server.url, log: silentLog, registry: createMetrics(), timeoutMs: 10_000 });
  onTestFinished(() => redis.stop());
  await redis.start();
  const owner = fresh();
  await createRedisStreamSlots({ redis, clock: systemClock, log: silentLog }).take(owner, 1);
  const life = Number(await redis.run("seats", (client) => client.pTTL(`pilothouse:seats:${owner}`)));
  expect([life > 5_000, life <= 10_000]).toEqual([true, true]);
});

test("a gateway counts its own slots while Redis is down, and Redis knows the slots after its restart", async () => {
  const [one, other] = [await connect(3_000), await connect(3_000)];
  const owner = fresh();
  expect(await one.seats.take(owner, 3)).toMatchObject({ isGranted: true });
  await server.kill();
  await expect.poll(() => [one.redis.isUp, other.redis.isUp], soon).toEqual([false, false]);
  const away = [await one.seats.take(owner, 3), await one.seats.take(owner, 3)];
  expect(away.map(({ isGranted }) => isGranted)).toEqual([true, true]);
  expect(await one.seats.take(owner, 3)).toEqual({ isGranted: false, taken: 3 });
  await server.restart();
  const takeAndRelease = async () => {
    const seat = await other.seats.take(owner, 3);
    release(seat);
    return seat.isGranted;
  };
  await expect.poll(takeAndRelease, soon).toBe(false);
}, 60_000);
