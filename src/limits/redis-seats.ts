import type { Clock } from "../platform/clock.ts";
import type { Log } from "../platform/log.ts";
import type { Redis } from "../platform/redis/redis.ts";
import { createScript } from "../platform/redis/redis-script.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import { createSeats, type Seats } from "./seats.ts";

/** Milliseconds for which a seat that is not renewed counts: so long those stay taken whose gateway has died. */
const defaultLife = 10_000;

/** Seats are renewed so often in their life: two turns may fail. */
const renewals = 3;

/**
 * Adds seats to those of a key, a sorted set by the time at which each lapses, unless there are as many as may be. ARGV:
 * the milliseconds that they last, the most, and their identifiers; those that are there already last anew. Gives how
 * many there were before. Time is that of Redis: the gateways' own clocks differ.
 */
const addSeats = createScript(`
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now)
local taken = redis.call("ZCARD", KEYS[1])
if taken >= tonumber(ARGV[2]) then return taken end
for i = 3, #ARGV do redis.call("ZADD", KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call("PEXPIRE", KEYS[1], ARGV[1])
return taken`);

export interface RedisSeatsOptions {
  readonly redis: Redis;
  readonly clock: Clock;
  readonly log: Log;
  /** Milliseconds for which a seat that is not renewed counts. */
  readonly life?: number;
}

/**
 * Makes seats that all gateways share. They lapse with the gateway that holds them. While Redis is away each gateway
 * counts its own alone, and tells Redis of them when it is back.
 */
export function createRedisSeats({ redis, life = defaultLife, ...parts }: RedisSeatsOptions): Seats {
  const local = createSeats();
  const keyOf = (owner: string): string => `pilothouse:seats:${owner}`;

  async function add(owner: string, most: number, ids: Iterable<string>): Promise<number | undefined> {
    const args = [String(life), String(most), ...ids];
    const taken = await redis.ask("seats", (client) => addSeats(client, [keyOf(owner)], args));
    return taken === undefined ? undefined : Number(taken);
  }

  async function renew(): Promise<void> {
    for (const [owner, ids] of local.held) {
      if (!redis.isUp) return;
      await add(owner, Number.MAX_SAFE_INTEGER, ids);
    }
  }

  return {
    ...createRepeatedJob({ run: renew, every: life / renewals, complaint: "seats could not be renewed" }, parts),
    async take(owner, most) {
      const seat = local.take(owner, most);
      if (!seat.isGranted) return seat;
      const taken = await add(owner, most, [seat.id]);
      if (taken !== undefined && taken >= most) {
        seat.release();
        return { isGranted: false, taken };
      }
      return {
        ...seat,
        release() {
          seat.release();
          void redis.ask("seats", (client) => client.zRem(keyOf(owner), seat.id));
        },
      };
    },
  };
}
