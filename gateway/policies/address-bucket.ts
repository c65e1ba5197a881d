import type { App } from "../../src/app/app.ts";
import { type BucketState, createBuckets } from "../../src/limits/buckets.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import { fail } from "../../src/platform/errors.ts";

// Who has no account is served as the free tier is.
const wish = { bucket: "global", ...tiers.get("free").buckets.global };
const wishes = [wish];

/** The `global` bucket of Free size that each client address has for what belongs to no account. */
export interface AddressBucket {
  /** Reads it without drawing, as this gateway knows it: headers of what draws nothing cost no round trip. */
  look(address: string): BucketState;
  /** Draws a token, and reads what is left. */
  draw(address: string): Promise<BucketState>;
  /** Gives a token back. */
  refund(address: string): Promise<void>;
}

/** Draws a token for a document of the service, such as a page or the OpenAPI document, and reads what is left. */
export type DrawForDocument = (address: string) => BucketState;

const documentWish = { bucket: "documents", capacity: 300, refillPerSecond: 60 };

// An IPv6 customer has a /64 of his own, and with it any number of addresses.
const ownerOf = (address: string): string => `address ${networkOf(address, { v4: 32, v6: 64 })}`;

/** Creates the `documents` buckets of client addresses. Each gateway has its own: they keep its thread and memory free. */
export function createDocumentBucket({ clock }: Pick<App, "clock">): DrawForDocument {
  const buckets = createBuckets();
  return (address) => {
    const [state] = buckets.take(ownerOf(address), [documentWish], clock.now());
    if (!state) throw new Error("a bucket that was drawn from has no state");
    return state.allowed ? state : { ...state, resetAt: Math.ceil(clock.now() / 1_000) + state.retryAfterSeconds };
  };
}

/** Makes the buckets of client addresses. */
export function createAddressBucket({ buckets, clock }: Pick<App, "buckets" | "clock">): AddressBucket {
  return {
    look: (address) => buckets.look(ownerOf(address), wish, clock.now()),
    async draw(address) {
      const [state] = await buckets.take(ownerOf(address), wishes, clock.now());
      if (!state) throw new Error("a bucket that was drawn from has no state");
      return state;
    },
    async refund(address) {
      await buckets.refund(ownerOf(address), wishes, clock.now());
    },
  };
}

/** Throws `rate-limited` when a bucket had no token left. `whose` is told to the client beside the bucket's name. */
export function refuseEmpty(state: BucketState, whose: string): void {
  if (state.allowed) return;
  const seconds = state.retryAfterSeconds;
  throw fail(
    "rate-limited",
    { retry_after_seconds: seconds },
    { detail: `bucket ${state.bucket} of ${whose} is empty; wait ${seconds} s`, retryAfter: seconds },
  );
}
