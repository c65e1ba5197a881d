import type { BucketState } from "../src/limits/buckets.ts";

/** Returns the four rate-limit headers of a response. */
export function rateLimitHeaders({ bucket, capacity, remaining, resetAt }: BucketState): Record<string, string> {
  return {
    "x-ratelimit-limit": String(capacity),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetAt),
    "x-ratelimit-bucket": bucket,
  };
}
