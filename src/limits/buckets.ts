import type { BucketSize } from "./tiers.ts";

/** A bucket from which a request draws. */
export interface BucketWish extends BucketSize {
  readonly bucket: string;
}

/** A bucket after a request drew from it, or was refused. */
export interface BucketState {
  readonly bucket: string;
  /** It had a token for the request. */
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
  /**
   * Draws one token from each bucket of an owner, and none when one of them is empty; gives the states in the order of the
   * wishes. `now` is in milliseconds since the Unix epoch. Buckets in memory answer at once, shared ones by a promise.
   */
  take(owner: string, wishes: readonly BucketWish[], now: number): BucketState[] | Promise<BucketState[]>;
  /** Gives back one token of each bucket, for a request that should have cost none. Gives the states, as `take` does. */
  refund(owner: string, wishes: readonly BucketWish[], now: number): BucketState[] | Promise<BucketState[]>;
  /** Reads buckets without drawing, as they are across all gateways. */
  read(owner: string, wishes: readonly BucketWish[], now: number): BucketState[] | Promise<BucketState[]>;
  /** Reads a bucket without drawing, as far as this process knows it. */
  look(owner: string, wish: BucketWish, now: number): BucketState;
}

/** Buckets in memory. */
export interface LocalBuckets extends Buckets {
  take(owner: string, wishes: readonly BucketWish[], now: number): BucketState[];
  refund(owner: string, wishes: readonly BucketWish[], now: number): BucketState[];
  read(owner: string, wishes: readonly BucketWish[], now: number): BucketState[];
  /** Takes over the tokens of a bucket that is kept elsewhere. */
  set(owner: string, wish: BucketWish, tokens: number, now: number): void;
  /** How many buckets are kept. */
  readonly size: number;
}

interface Level {
  tokens: number;
  at: number;
  fullAt: number;
}

/** How many buckets are looked at for each one kept to find full ones, so that memory is bounded without a timer. */
const sweptPerTake = 2;

/** Describes a bucket with so many tokens; `allowed` says whether the request may pass it. */
export function describeBucket(wish: BucketWish, tokens: number, allowed: boolean, now: number): BucketState {
  const { bucket, capacity, refillPerSecond } = wish;
  return {
    bucket,
    allowed,
    capacity,
    remaining: Math.floor(tokens),
    resetAt: Math.ceil(now / 1_000 + (capacity - tokens) / refillPerSecond),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil((1 - tokens) / refillPerSecond)),
  };
}

/** Makes buckets in memory. A full bucket is as good as none, and is forgotten. */
export function createBuckets(): LocalBuckets {
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
  function tokensOf(owner: string, { bucket, capacity, refillPerSecond }: BucketWish, now: number): number {
    const level = levels.get(`${bucket} ${owner}`);
    if (!level) return capacity;
    return Math.min(capacity, level.tokens + (Math.max(0, now - level.at) / 1_000) * refillPerSecond);
  }

  function keep(owner: string, { bucket, capacity, refillPerSecond }: BucketWish, tokens: number, now: number): void {
    forgetFull(now);
    const name = `${bucket} ${owner}`;
    const level = levels.get(name);
    const at = Math.max(now, level?.at ?? now);
    const fullAt = at + ((capacity - tokens) / refillPerSecond) * 1_000;
    if (level) Object.assign(level, { tokens, at, fullAt });
    else levels.set(name, { tokens, at, fullAt });
  }

  function look(owner: string, wish: BucketWish, now: number): BucketState {
    const tokens = tokensOf(owner, wish, now);
    return describeBucket(wish, tokens, tokens >= 1, now);
  }

  return {
    get size() {
      return levels.size;
    },
    set: keep,
    look,
    read: (owner, wishes, now) => wishes.map((wish) => look(owner, wish, now)),
    refund(owner, wishes, now) {
      return wishes.map((wish) => {
        const tokens = Math.min(wish.capacity, tokensOf(owner, wish, now) + 1);
        keep(owner, wish, tokens, now);
        return describeBucket(wish, tokens, tokens >= 1, now);
      });
    },
    take(owner, wishes, now) {
      const allowed = wishes.every((wish) => tokensOf(owner, wish, now) >= 1);
      return wishes.map((wish) => {
        const before = tokensOf(owner, wish, now);
        const tokens = allowed ? before - 1 : before;
        keep(owner, wish, tokens, now);
        return describeBucket(wish, tokens, before >= 1, now);
      });
    },
  };
}
