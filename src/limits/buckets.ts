/** A bucket after a request drew from it. */
export interface BucketState {
  readonly allowed: boolean;
  readonly capacity: number;
  /** Whole tokens left. */
  readonly remaining: number;
  /** When the bucket is full again: Unix time in seconds, rounded up. */
  readonly resetAt: number;
  /** Seconds until the request would be allowed, rounded up; 0 when it was. */
  readonly retryAfterSeconds: number;
}

/** Token buckets: `capacity` requests at once, `refillPerSecond` over time. */
export interface Buckets {
  /** Draws one token. `key` is whose bucket it is, `now` milliseconds since the Unix epoch. */
  take(key: string, bucket: string, capacity: number, refillPerSecond: number, now: number): BucketState;
  /** Reads a bucket without drawing. */
  look(key: string, bucket: string, capacity: number, refillPerSecond: number, now: number): BucketState;
}

interface Level {
  tokens: number;
  at: number;
  fullAt: number;
}

/** How many buckets are looked at for each draw to find full ones, so that memory is bounded without a timer. */
const sweptPerTake = 2;

function describe(tokens: number, allowed: boolean, capacity: number, rate: number, now: number): BucketState {
  return {
    allowed,
    capacity,
    remaining: Math.floor(tokens),
    resetAt: Math.ceil(now / 1_000 + (capacity - tokens) / rate),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil((1 - tokens) / rate)),
  };
}

/** Makes buckets in memory. A full bucket is as good as none, and is forgotten. */
export function createBuckets(): Buckets & { readonly size: number } {
  const levels = new Map<string, Level>();
  let sweep = levels.entries();

  function forgetFull(now: number): void {
    for (let seen = 0; seen < sweptPerTake; seen += 1) {
      const { value: entry } = sweep.next();
      if (!entry) {
        sweep = levels.entries();
        return;
      }
      const [name, level] = entry;
      if (level.fullAt <= now) levels.delete(name);
    }
  }

  /** Tokens now: refilled since the last draw, and never more than the capacity, which may have changed with the tier. */
  function tokensOf(level: Level | undefined, capacity: number, rate: number, now: number): number {
    if (!level) return capacity;
    return Math.min(capacity, level.tokens + (Math.max(0, now - level.at) / 1_000) * rate);
  }

  return {
    get size() {
      return levels.size;
    },
    look(key, bucket, capacity, rate, now) {
      const tokens = tokensOf(levels.get(`${bucket} ${key}`), capacity, rate, now);
      return describe(tokens, tokens >= 1, capacity, rate, now);
    },
    take(key, bucket, capacity, rate, now) {
      forgetFull(now);
      const name = `${bucket} ${key}`;
      const level = levels.get(name);
      const before = tokensOf(level, capacity, rate, now);
      const allowed = before >= 1;
      const tokens = allowed ? before - 1 : before;
      const at = Math.max(now, level?.at ?? now);
      const fullAt = at + ((capacity - tokens) / rate) * 1_000;
      if (level) Object.assign(level, { tokens, at, fullAt });
      else levels.set(name, { tokens, at, fullAt });
      return describe(tokens, allowed, capacity, rate, now);
    },
  };
}
