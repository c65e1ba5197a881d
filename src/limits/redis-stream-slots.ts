import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Redis } from "../platform/redis/redis.ts";
import { createScript } from "../platform/redis/redis-script.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import { createStreamSlots, type StreamSlots } from "./stream-slots.ts";

/** Milliseconds after which a slot that is not renewed expires, such as a slot of a dead gateway. */
const defaultLifeMs = 10_000;

/** Renewals within the lifetime of a slot: two may fail. */
const renewals = 3;

/**
 * Adds slots to a sorted set by expiry, unless the maximum is reached. Existing slots are renewed. ARGV: lifetime in
 * milliseconds, maximum, ids. Returns the number of slots before the call. Uses the time of Redis, because clocks of
 * gateways differ.
 */
const addSlots = createScript(`
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now)
local taken = redis.call("ZCARD", KEYS[1])
if taken >= tonumber(ARGV[2]) then return taken end
for i = 3, #ARGV do redis.call("ZADD", KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call("PEXPIRE", KEYS[1], ARGV[1])
return taken`);

export interface RedisStreamSlotsOptions extends Pick<PlatformParts, "clock" | "log"> {
  readonly redis: Redis;
  /** Milliseconds after which a slot that is not renewed expires. */
  readonly life?: number;
}

/**
 * Creates slots shared by all gateways. Slots of a dead gateway expire. While Redis is down, each gateway counts only
 * its own slots, and registers these slots when Redis is up again.
 */
export function createRedisStreamSlots({
  redis,
  life = defaultLifeMs,
  ...parts
}: RedisStreamSlotsOptions): StreamSlots {
  const local = createStreamSlots();
  const keyOf = (owner: string): string => `pilothouse:seats:${owner}`;

  async function add(owner: string, max: number, ids: Iterable<string>): Promise<number | undefined> {
    const args = [String(life), String(max), ...ids];
    const taken = await redis.run("seats", (client) => addSlots(client, [keyOf(owner)], args));
    return taken === undefined ? undefined : Number(taken);
  }

  async function renew(): Promise<void> {
    for (const [owner, ids] of local.held) {
      if (!redis.isUp) return;
      await add(owner, Number.MAX_SAFE_INTEGER, ids);
    }
  }

  return {
    ...createRepeatedJob({ run: renew, every: life / renewals, failureMessage: "failed to renew slots" }, parts),
    async take(owner, max) {
      const slot = local.take(owner, max);
      if (!slot.isGranted) return slot;
      const taken = await add(owner, max, [slot.id]);
      if (taken !== undefined && taken >= max) {
        slot.release();
        return { isGranted: false, taken };
      }
      return {
        ...slot,
        release() {
          slot.release();
          void redis.run("seats", (client) => client.zRem(keyOf(owner), slot.id));
        },
      };
    },
  };
}
