import type { BucketState } from "../src/limits/buckets.ts";

/** The four rate-limit headers of an answer. */
export function rateLimitHeaders({ bucket, capacity, remaining, resetAt }: BucketState): Record<string, string> {
  return {
    "x-ratelimit-limit": String(capacity),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetAt),
    "x-ratelimit-bucket": bucket,
  };
}
