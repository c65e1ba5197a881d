import type { Redis } from "../platform/redis/redis.ts";
import { createScript } from "../platform/redis/redis-script.ts";
import { type BucketState, type Buckets, type BucketWish, createBuckets, describeBucket } from "./buckets.ts";

/** Gateways that draw listen here, so that their number is known while Redis is there. */
const presence = "pilothouse:limits";

/** Milliseconds between two counts of the gateways. */
const countEvery = 5_000;

/** How many gateways are reckoned with before they could be counted: half of each bucket is then the share of one. */
const assumedGateways = 2;

/** A level is kept for this long, in milliseconds, after it is full, when it is as good as none. */
const keptWhenFull = 1_000;

/**
 * Draws one token from each key, or none when one has none; or gives one back to each; or only reads. ARGV: the time in
 * milliseconds or "", what to draw (1, -1 or 0), then capacity and refill per second of each key. Gives 1 or 0, and the tokens that each key
 * has now. Time is that of Redis: with the gateways' own clocks one that runs ahead would fill every bucket, and leave
 * them dry for the others until their time has come. Levels are kept to six digits: at whole ones a bucket of 90 a second would lose what flows in between two draws.
 */
const runScript = createScript(`
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call("TIME")
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local draw = tonumber(ARGV[2])
local levels = redis.call("MGET", unpack(KEYS))
local tokens, ats, drawn = {}, {}, 1
for i = 1, #KEYS do
  local capacity, rate = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  tokens[i], ats[i] = capacity, now
  if levels[i] then
    local level, at = string.match(levels[i], "^(%S+) (%S+)$")
    tokens[i] = math.min(capacity, level + math.max(0, now - at) / 1000 * rate)
    ats[i] = math.max(now, at)
  end
  if tokens[i] < draw then drawn = 0 end
end
local reply = { drawn }
for i = 1, #KEYS do
  local capacity, rate = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  if drawn == 1 and draw ~= 0 then
    tokens[i] = math.min(capacity, tokens[i] - draw)
    local full = math.ceil((capacity - tokens[i]) / rate * 1000) + ${keptWhenFull}
    redis.call("SET", KEYS[i], string.format("%.6f %d", tokens[i], ats[i]), "PX", full)
  end
  reply[i + 1] = string.format("%.6f", tokens[i])
end
return reply`);

export interface RedisBucketsOptions {
  readonly redis: Redis;
  /** Reckons with the caller's time instead of that of Redis, for tests that step it. */
  readonly callersClock?: boolean;
}

/** What each command draws from every bucket. */
const draws = { take: "1", refund: "-1", read: "0" } as const;
type Command = keyof typeof draws;

/** A bucket's part of a gateway when each has to do without the others. */
function shareOf(wish: BucketWish, gateways: number): BucketWish {
  const capacity = Math.max(1, Math.floor(wish.capacity / gateways));
  return { ...wish, capacity, refillPerSecond: wish.refillPerSecond / gateways };
}

/** Reads the reply of the script. */
function readReply(reply: unknown): { drawn: boolean; tokens: number[] } {
  const [drawn, ...tokens] = Array.isArray(reply) ? reply.map(Number) : [];
  if (drawn === undefined) throw new Error("Redis answered the rate-limit script with something else than a list");
  return { drawn: drawn === 1, tokens };
}

/**
 * Makes buckets that all gateways share, one round trip for all buckets of a request. While Redis is away each gateway
 * draws from buckets of its own, which are the shared ones divided by the gateways last counted.
 * Make them before Redis is started: they show there that this gateway draws.
 */
export function createRedisBuckets({ redis, callersClock = false }: RedisBucketsOptions): Buckets {
  /** What was last known of the whole buckets, and of this gateway's shares of them. */
  const known = createBuckets();
  const shares = createBuckets();
  let gateways = assumedGateways;
  let countedAt = Number.NEGATIVE_INFINITY;
  redis.listen(presence, () => undefined);

  async function count(): Promise<void> {
    countedAt = performance.now();
    const found = await redis.ask("buckets", (client) => client.pubSubNumSub([presence]));
    gateways = Math.max(1, found?.[presence] ?? gateways);
  }

  function runOnShare(command: Command, owner: string, wishes: readonly BucketWish[], now: number): BucketState[] {
    const own = wishes.map((wish) => shareOf(wish, gateways));
    return shares[command](owner, own, now);
  }

  /** Carries a command out in Redis, or on shares when Redis does not answer. */
  async function runShared(command: Command, owner: string, wishes: readonly BucketWish[], now: number) {
    if (performance.now() - countedAt > countEvery) void count();
    // The braces keep the buckets of an owner on one node of a Redis cluster.
    const keys = wishes.map(({ bucket }) => `pilothouse:bucket:{${owner}}:${bucket}`);
    const sizes = wishes.flatMap(({ capacity, refillPerSecond }) => [String(capacity), String(refillPerSecond)]);
    const time = callersClock ? String(now) : "";
    const args = [time, draws[command], ...sizes];
    const reply = await redis.ask("buckets", (client) => runScript(client, keys, args));
    // Redis was only slow: it will have drawn, and what is known of the whole bucket decides meanwhile.
    if (reply === undefined && redis.isUp) return known[command](owner, wishes, now);
    if (reply === undefined) return runOnShare(command, owner, wishes, now);
    const { drawn, tokens } = readReply(reply);
    return wishes.map((wish, index) => {
      const left = tokens[index] ?? 0;
      known.set(owner, wish, left, now);
      shares.set(owner, shareOf(wish, gateways), left / gateways, now);
      return describeBucket(wish, left, drawn || left >= 1, now);
    });
  }

  const runWhereTheyAre =
    (command: Command): Buckets["take"] =>
    (owner, wishes, now) => {
      if (redis.isUp) return runShared(command, owner, wishes, now);
      redis.missed("buckets");
      return runOnShare(command, owner, wishes, now);
    };

  return {
    look: (owner, wish, now) =>
      redis.isUp ? known.look(owner, wish, now) : shares.look(owner, shareOf(wish, gateways), now),
    take: runWhereTheyAre("take"),
    refund: runWhereTheyAre("refund"),
    read: runWhereTheyAre("read"),
  };
}
