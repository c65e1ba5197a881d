import type { App } from "../../src/app.ts";
import type { BucketState } from "../../src/limits/buckets.ts";
import { fail } from "../../src/platform/errors.ts";

const BUCKET = "global";
// Who has no account is served as the free tier is.
const TIER = "free";

/** The `global` bucket of Free size that each client address has for what belongs to no account. */
export interface AddressBucket {
  /** Reads it without drawing, as this gateway knows it: headers of what draws nothing cost no round trip. */
  look(address: string): BucketState;
  /** Draws a token, and reads what is left. */
  draw(address: string): Promise<BucketState>;
}

/** Makes the buckets of client addresses. */
export function createAddressBucket({ buckets, clock, tiers }: App): AddressBucket {
  const wish = { bucket: BUCKET, ...tiers.bucket(TIER, BUCKET) };
  const wishes = [wish];
  const ownerOf = (address: string): string => `address ${address}`;
  return {
    look: (address) => buckets.look(ownerOf(address), wish, clock.now()),
    async draw(address) {
      const [state] = await buckets.take(ownerOf(address), wishes, clock.now());
      if (!state) {
        throw new Error("a bucket that was drawn from has no state");
      }
      return state;
    },
  };
}

/** Throws `rate-limited` when a bucket had no token left. `whose` is told to the client beside the bucket's name. */
export function refuseEmpty(state: BucketState, whose: string): void {
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
