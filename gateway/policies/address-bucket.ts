import type { App } from "../../src/app.ts";
import type { Buckets } from "../../src/limits/buckets.ts";
import { fail } from "../../src/platform/errors.ts";
import type { ShownBucket } from "../rate-limit-headers.ts";

const BUCKET = "global";
// Who has no account is served as the free tier is.
const TIER = "free";

/** The `global` bucket of Free size that each client address has for what belongs to no account. */
export interface AddressBucket {
  /** Reads it without drawing. */
  look(address: string): ShownBucket;
  /** Draws a token, and reads what is left. */
  draw(address: string): ShownBucket;
}

/** Makes the buckets of client addresses. */
export function createAddressBucket({ buckets, clock, tiers }: App): AddressBucket {
  const { capacity, refillPerSecond } = tiers.bucket(TIER, BUCKET);
  const ask = (from: Buckets["take"], address: string): ShownBucket => ({
    ...from(`address ${address}`, BUCKET, capacity, refillPerSecond, clock.now()),
    bucket: BUCKET,
  });
  return {
    look: (address) => ask(buckets.look, address),
    draw: (address) => ask(buckets.take, address),
  };
}

/** Throws `rate-limited` when a bucket had no token left. `whose` is told to the client beside the bucket's name. */
export function refuseEmpty(state: ShownBucket, whose: string): void {
  if (state.allowed) {
    return;
  }
  const seconds = state.retryAfterSeconds;
  throw fail(
    "rate-limited",
    { retry_after_seconds: seconds },
    { detail: `bucket ${state.bucket} of ${whose} is empty; wait ${seconds} s`, retryAfter: seconds },
  );
}
