import type { App } from "../../src/app/app.ts";
import { type BucketState, createBuckets } from "../../src/limits/buckets.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import { fail } from "../../src/platform/errors.ts";

// Callers without an account have the limits of the free tier.
const bucketRequest = { bucket: "global", ...tiers.get("free").buckets.global };
const bucketRequests = [bucketRequest];

/**
 * The `global` bucket of each client address, with the limits of the free tier, for requests that belong to no account.
 */
export interface AddressBucket {
  /** Returns the state known to this gateway without drawing, so that response headers cost no round trip. */
  peek(address: string): BucketState;
  /** Draws a token, and returns the new state. */
  draw(address: string): Promise<BucketState>;
  refund(address: string): Promise<void>;
}

/** Draws a token for a document of the service, such as a page or the OpenAPI document. Returns the new state. */
export type DrawForDocument = (address: string) => BucketState;

const documentRequest = { bucket: "documents", capacity: 300, refillPerSecond: 60 };

// An IPv6 customer controls a /64, which has any number of addresses.
const ownerOf = (address: string): string => `address ${networkOf(address, { v4: 32, v6: 64 })}`;

/** Creates the `documents` buckets of client addresses. Each gateway has its own, to protect its thread and memory. */
export function createDocumentBucket({ clock }: Pick<App, "clock">): DrawForDocument {
  const buckets = createBuckets();
  return (address) => {
    const [state] = buckets.take(ownerOf(address), [documentRequest], clock.now());
    if (!state) throw new Error("expected the state of the drawn bucket");
    return state.allowed ? state : { ...state, resetAt: Math.ceil(clock.now() / 1_000) + state.retryAfterSeconds };
  };
}

/** Creates the `global` buckets of client addresses. */
export function createAddressBucket({ buckets, clock }: Pick<App, "buckets" | "clock">): AddressBucket {
  return {
    peek: (address) => buckets.peek(ownerOf(address), bucketRequest, clock.now()),
    async draw(address) {
      const [state] = await buckets.take(ownerOf(address), bucketRequests, clock.now());
      if (!state) throw new Error("expected the state of the drawn bucket");
      return state;
    },
    async refund(address) {
      await buckets.refund(ownerOf(address), bucketRequests, clock.now());
    },
  };
}

/** Throws `rate-limited` if the bucket was empty. The error names the bucket and its `owner`. */
export function refuseEmpty(state: BucketState, owner: string): void {
  if (state.allowed) return;
  const seconds = state.retryAfterSeconds;
  throw fail(
    "rate-limited",
    { retry_after_seconds: seconds },
    { detail: `rate limit "${state.bucket}" of ${owner} exceeded: retry after ${seconds} s`, retryAfter: seconds },
  );
}
