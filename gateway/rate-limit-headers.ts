import type { BucketState } from "../src/limits/buckets.ts";

/** A bucket as the rate-limit headers show it. */
export interface ShownBucket extends BucketState {
  readonly bucket: string;
}

/** The four rate-limit headers of an answer. */
export function rateLimitHeaders({ bucket, capacity, remaining, resetAt }: ShownBucket): Record<string, string> {
  return {
    "x-ratelimit-limit": String(capacity),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetAt),
    "x-ratelimit-bucket": bucket,
  };
}
