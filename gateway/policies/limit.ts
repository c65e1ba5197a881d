import type { App } from "../../src/app.ts";
import type { Buckets } from "../../src/limits/buckets.ts";
import type { GatewayCall } from "../call.ts";
import type { ShownBucket } from "../rate-limit-headers.ts";
import { refuseEmpty } from "./address-bucket.ts";

/** Draws one token from each bucket that the method needs; none when one of them is empty, which is `rate-limited`. */
export function limit(app: App, call: GatewayCall): void {
  const { rules } = call.served;
  if (!rules.public) {
    // The headers show the last, which is the most specific, or the one that was empty.
    draw(app, call, ["global", ...rules.buckets]);
  }
}

/** Draws one token for one message of a stream. */
export function drawForMessage(app: App, call: GatewayCall, bucket: string): void {
  draw(app, call, [bucket]);
}

function draw({ buckets, clock, tiers }: App, call: GatewayCall, names: readonly string[]): void {
  const { accountId, tier } = call.principal;
  const now = clock.now();
  const ask = (from: Buckets["take"], bucket: string): ShownBucket => {
    const { capacity, refillPerSecond } = tiers.bucket(tier, bucket);
    return { ...from(accountId, bucket, capacity, refillPerSecond, now), bucket };
  };
  // A bucket alone is its own look: an empty one gives no token.
  const looked = names.length > 1 ? names.map((bucket) => ask(buckets.look, bucket)) : [];
  const empty = looked.find(({ allowed }) => !allowed);
  const shown = empty ?? names.map((bucket) => ask(buckets.take, bucket)).at(-1);
  if (shown) {
    call.show(shown);
    refuseEmpty(shown, `tier ${tier}`);
  }
}
