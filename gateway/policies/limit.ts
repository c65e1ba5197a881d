import type { App } from "../../src/app.ts";
import type { BucketState } from "../../src/limits/buckets.ts";
import type { GatewayCall } from "../call.ts";
import { refuseEmpty } from "./address-bucket.ts";

/**
 * Draws one token from each bucket that the method needs; none when one of them is empty, which is `rate-limited`. Gives a
 * promise only where the buckets are shared: with those in memory a request waits for nothing.
 */
export function limit(app: App, call: GatewayCall): void | Promise<void> {
  const { rules } = call.served;
  // The headers show the last, which is the most specific, or the one that was empty.
  return rules.public ? undefined : draw(app, call, ["global", ...rules.buckets]);
}

/** Draws one token for one message of a stream. */
export function drawForMessage(app: App, call: GatewayCall, bucket: string): void | Promise<void> {
  return draw(app, call, [bucket]);
}

function draw({ buckets, clock, tiers }: App, call: GatewayCall, names: readonly string[]): void | Promise<void> {
  const { accountId, tier } = call.principal;
  const wishes = names.map((bucket) => ({ bucket, ...tiers.bucket(tier, bucket) }));
  const states = buckets.take(accountId, wishes, clock.now());
  return states instanceof Promise ? states.then((drawn) => settle(call, drawn)) : settle(call, states);
}

function settle(call: GatewayCall, states: readonly BucketState[]): void {
  const shown = states.find(({ allowed }) => !allowed) ?? states.at(-1);
  if (shown) {
    call.show(shown);
    refuseEmpty(shown, `tier ${call.principal.tier}`);
  }
}
