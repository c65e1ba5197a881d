import type { App } from "../../src/app.ts";
import type { GatewayCall } from "../call.ts";
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
  const needed = names.map((bucket) => ({ bucket, ...tiers.bucket(tier, bucket) }));
  for (const pass of [buckets.look, buckets.take]) {
    for (const { bucket, capacity, refillPerSecond } of needed) {
      const state = { ...pass(accountId, bucket, capacity, refillPerSecond, now), bucket };
      call.show(state);
      refuseEmpty(state, `tier ${tier}`);
    }
  }
}
