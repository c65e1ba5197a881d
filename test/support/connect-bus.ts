import { onTestFinished } from "vitest";
import type { Bus } from "../../src/platform/bus.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { createRedis } from "../../src/platform/redis/redis.ts";
import { createRedisBus } from "../../src/platform/redis/redis-bus.ts";
import { silentLog } from "./database.ts";
import type { RedisServer } from "./redis-server.ts";

/** Creates the bus of one of several gateways until the test ends. */
export async function connectBus({ url }: RedisServer): Promise<Bus> {
  const redis = createRedis({ url, log: silentLog, registry: createMetrics(), timeoutMs: 10_000 });
  const bus = createRedisBus(redis);
  onTestFinished(() => redis.stop());
  await redis.start();
  return bus;
}
