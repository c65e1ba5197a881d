import type { BucketSize } from "./tiers.ts";

/** A bucket to draw from. */
export interface BucketRequest extends BucketSize {
  readonly bucket: string;
}

/** State of a bucket after a draw, a refusal, a refund or a read. */
export interface BucketState {
  readonly bucket: string;
  /** Whether the bucket had a token for the request. */
  readonly allowed: boolean;
  readonly capacity: number;
  /** Remaining whole tokens. */
  readonly remaining: number;
  /** Unix time in seconds, rounded up, at which the bucket is full. */
  readonly resetAt: number;
  /** Seconds until a request would be allowed, rounded up, or 0 if allowed. */
  readonly retryAfterSeconds: number;
}

/** Token buckets: `capacity` requests at once, `refillPerSecond` over time. */
export interface Buckets {
  /**
   * Draws one token from each bucket of an owner, or none if any is empty. Returns the states in the given order. `now`
   * is Unix time in milliseconds. Local buckets return the states synchronously, shared buckets a promise.
   */
  take(owner: string, requests: readonly BucketRequest[], now: number): BucketState[] | Promise<BucketState[]>;
  /** Returns one token to each bucket, for a request that must not count. Returns the states like `take`. */
  refund(owner: string, requests: readonly BucketRequest[], now: number): BucketState[] | Promise<BucketState[]>;
  /** Reads buckets, as shared by all gateways, without drawing. */
  read(owner: string, requests: readonly BucketRequest[], now: number): BucketState[] | Promise<BucketState[]>;
  /** Reads this process's view of a bucket without drawing. */
  peek(owner: string, request: BucketRequest, now: number): BucketState;
}

export interface LocalBuckets extends Buckets {
  take(owner: string, requests: readonly BucketRequest[], now: number): BucketState[];
  refund(owner: string, requests: readonly BucketRequest[], now: number): BucketState[];
  read(owner: string, requests: readonly BucketRequest[], now: number): BucketState[];
  /** Sets the tokens of a bucket that is stored elsewhere. */
  set(owner: string, request: BucketRequest, tokens: number, now: number): void;
  /** Number of buckets in memory. */
  readonly size: number;
}

interface Level {
  tokens: number;
  at: number;
  fullAt: number;
}

/** Number of buckets that each update checks, to delete full ones. Bounds memory without a timer. */
const sweptPerTake = 2;

export function describeBucket(request: BucketRequest, tokens: number, allowed: boolean, now: number): BucketState {
  const { bucket, capacity, refillPerSecond } = request;
  return {
    bucket,
    allowed,
    capacity,
    remaining: Math.floor(tokens),
    resetAt: Math.ceil(now / 1_000 + (capacity - tokens) / refillPerSecond),
    retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil((1 - tokens) / refillPerSecond)),
  };
}

/** Creates buckets in memory. A full bucket is deleted, because a missing bucket counts as full. */
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

  /**
   * Returns the current tokens, refilled since the last update up to the capacity. The capacity may have changed with
   * the tier.
   */
  function tokensOf(owner: string, { bucket, capacity, refillPerSecond }: BucketRequest, now: number): number {
    const level = levels.get(`${bucket} ${owner}`);
    if (!level) return capacity;
    return Math.min(capacity, level.tokens + (Math.max(0, now - level.at) / 1_000) * refillPerSecond);
  }

  function keep(
    owner: string,
    { bucket, capacity, refillPerSecond }: BucketRequest,
    tokens: number,
    now: number,
  ): void {
    forgetFull(now);
    const name = `${bucket} ${owner}`;
    const level = levels.get(name);
    const at = Math.max(now, level?.at ?? now);
    const fullAt = at + ((capacity - tokens) / refillPerSecond) * 1_000;
    if (level) Object.assign(level, { tokens, at, fullAt });
    else levels.set(name, { tokens, at, fullAt });
  }

  function peek(owner: string, request: BucketRequest, now: number): BucketState {
    const tokens = tokensOf(owner, request, now);
    return describeBucket(request, tokens, tokens >= 1, now);
  }

  return {
    get size() {
      return levels.size;
    },
    set: keep,
    peek,
    read: (owner, requests, now) => requests.map((request) => peek(owner, request, now)),
    refund(owner, requests, now) {
      return requests.map((request) => {
        const tokens = Math.min(request.capacity, tokensOf(owner, request, now) + 1);
        keep(owner, request, tokens, now);
        return describeBucket(request, tokens, tokens >= 1, now);
      });
    },
    take(owner, requests, now) {
      const allowed = requests.every((request) => tokensOf(owner, request, now) >= 1);
      return requests.map((request) => {
        const before = tokensOf(owner, request, now);
        const tokens = allowed ? before - 1 : before;
        keep(owner, request, tokens, now);
        return describeBucket(request, tokens, before >= 1, now);
      });
    },
  };
}
