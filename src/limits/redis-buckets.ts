import type { Redis } from "../platform/redis/redis.ts";
import { createScript } from "../platform/redis/redis-script.ts";
import { type BucketRequest, type BucketState, type Buckets, createBuckets, describeBucket } from "./buckets.ts";

/** Subscribing to this channel makes a gateway count as present in Redis. */
const presence = "pilothouse:limits";

/** Milliseconds between counts of the gateways. */
const countEvery = 5_000;

/** Number of gateways assumed before the first count: a gateway's share is then half of each bucket. */
const assumedGateways = 2;

/** Milliseconds for which a full bucket stays in Redis. */
const keptWhenFull = 1_000;

/**
 * Draws one token from each key, or none if any is empty. A draw of -1 refunds a token, and 0 only reads. ARGV: time in
 * milliseconds or "", draw, then capacity and refill per second of each key. Returns 1 or 0, and the tokens of each
 * key. Uses the time of Redis: a gateway with a fast clock would fill every bucket, and then block the others. Levels
 * keep six decimals, because whole numbers would lose the refill between draws of a bucket of 90 per second.
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
  /** Uses the caller's time instead of that of Redis. */
  readonly callersClock?: boolean;
}

/** Tokens that each command draws. */
const draws = { take: "1", refund: "-1", read: "0" } as const;
type Command = keyof typeof draws;

/** Returns the part of a bucket that one gateway may use without Redis. */
function shareOf(request: BucketRequest, gateways: number): BucketRequest {
  const capacity = Math.max(1, Math.floor(request.capacity / gateways));
  return { ...request, capacity, refillPerSecond: request.refillPerSecond / gateways };
}

/** Parses the reply of the script. */
function readReply(reply: unknown): { drawn: boolean; tokens: number[] } {
  const [drawn, ...tokens] = Array.isArray(reply) ? reply.map(Number) : [];
  if (drawn === undefined) throw new Error("expected a list from the rate-limit script in Redis");
  return { drawn: drawn === 1, tokens };
}

/**
 * Creates buckets shared by all gateways, with one round trip per request. While Redis is down, each gateway uses its
 * share: the bucket divided by the last count of gateways. Must be created before Redis is started.
 */
export function createRedisBuckets({ redis, callersClock = false }: RedisBucketsOptions): Buckets {
  /** Last known levels of the shared buckets. */
  const known = createBuckets();
  /** Levels of this gateway's shares. */
  const shares = createBuckets();
  let gateways = assumedGateways;
  let countedAt = Number.NEGATIVE_INFINITY;
  redis.listen(presence, () => undefined);

  async function count(): Promise<void> {
    countedAt = performance.now();
    const found = await redis.run("buckets", (client) => client.pubSubNumSub([presence]));
    gateways = Math.max(1, found?.[presence] ?? gateways);
  }

  function runOnShare(command: Command, owner: string, requests: readonly BucketRequest[], now: number): BucketState[] {
    const own = requests.map((request) => shareOf(request, gateways));
    return shares[command](owner, own, now);
  }

  /** Runs a command in Redis, or on the shares if Redis does not reply. */
  async function runShared(command: Command, owner: string, requests: readonly BucketRequest[], now: number) {
    if (performance.now() - countedAt > countEvery) void count();
    // The braces keep an owner's buckets on one node of a Redis cluster.
    const keys = requests.map(({ bucket }) => `pilothouse:bucket:{${owner}}:${bucket}`);
    const sizes = requests.flatMap(({ capacity, refillPerSecond }) => [String(capacity), String(refillPerSecond)]);
    const time = callersClock ? String(now) : "";
    const args = [time, draws[command], ...sizes];
    const reply = await redis.run("buckets", (client) => runScript(client, keys, args));
    // Redis is slow and has probably run the command, so the last known shared level decides.
    if (reply === undefined && redis.isUp) return known[command](owner, requests, now);
    if (reply === undefined) return runOnShare(command, owner, requests, now);
    const { drawn, tokens } = readReply(reply);
    return requests.map((request, index) => {
      const left = tokens[index] ?? 0;
      known.set(owner, request, left, now);
      shares.set(owner, shareOf(request, gateways), left / gateways, now);
      return describeBucket(request, left, drawn || left >= 1, now);
    });
  }

  const runCommand =
    (command: Command): Buckets["take"] =>
    (owner, requests, now) => {
      if (redis.isUp) return runShared(command, owner, requests, now);
      redis.countMissed("buckets");
      return runOnShare(command, owner, requests, now);
    };

  return {
    peek: (owner, request, now) =>
      redis.isUp ? known.peek(owner, request, now) : shares.peek(owner, shareOf(request, gateways), now),
    take: runCommand("take"),
    refund: runCommand("refund"),
    read: runCommand("read"),
  };
}
