import type { BucketState } from "../../src/limits/buckets.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import type { GatewayCall } from "../call.ts";
import { refuseEmpty } from "./address-bucket.ts";
import type { AdmissionPolicy, PolicyParts } from "./policy.ts";

/**
 * Draws one token from each bucket that the method needs; none when one of them is empty, which is `rate-limited`. The
 * headers show the last bucket, which is the most specific, or the one that was empty.
 */
export const rateLimits: AdmissionPolicy = {
  name: "rate limits",
  enforces: ["buckets"],
  concerns: ({ rules }) => !rules.public,
  refuses: () => ["rate-limited"],
  tells({ rules }) {
    const buckets = rules.buckets.map((bucket) => `\`${bucket}\``).join(" and ");
    return buckets && `Draws from the rate-limit bucket ${buckets} besides \`global\`.`;
  },
  admit(call, parts) {
    const states = change("take", call, parts, ["global", ...call.served.rules.buckets]);
    return states instanceof Promise ? states.then((drawn) => settle(call, drawn)) : settle(call, states);
  },
};

function settle(call: GatewayCall, states: readonly BucketState[]): void {
  const shown = states.find(({ allowed }) => !allowed) ?? states.at(-1);
  if (!shown) return;
  call.show(shown);
  refuseEmpty(shown, `tier ${call.principal.tier}`);
  call.hasDrawn = true;
}

/** Milliseconds after which a stream that is held asks again: the smallest bucket has a token every 11 ms. */
const holdMs = 20;

/**
 * Draws tokens for one message of a stream. A stream that has a bucket of its own is held while that is empty; of another
 * stream the message is refused, and what was drawn for it is given back.
 */
export async function drawForMessage(call: GatewayCall, parts: PolicyParts, tokens: number): Promise<void> {
  const own = call.served.rules.buckets.at(-1);
  const names = [own ?? "global"];
  for (let drawn = 0; drawn < tokens; ) {
    const [state] = await change("take", call, parts, names);
    if (!state || state.allowed) {
      drawn += 1;
    } else if (own === undefined) {
      for (; drawn > 0; drawn -= 1) await change("refund", call, parts, names);
      refuseEmpty(state, `tier ${call.principal.tier}`);
    } else {
      await sleep(holdMs, call.signal);
      call.signal.throwIfAborted();
    }
  }
}

/** Gives back what a call has drawn from the buckets of its own method, unless the method has charged for itself. */
export async function refundOwnBuckets(call: GatewayCall, parts: PolicyParts): Promise<void> {
  const { buckets } = call.served.rules;
  if (!call.hasDrawn || call.isCharged || buckets.length === 0) return;
  call.hasDrawn = false;
  const shown = (await change("refund", call, parts, buckets)).at(-1);
  if (shown) call.show(shown);
}

function change(
  kind: "take" | "refund",
  call: GatewayCall,
  { buckets, clock, limits }: PolicyParts,
  names: readonly string[],
): BucketState[] | Promise<BucketState[]> {
  const { principal } = call;
  const wishes = names.map((bucket) => ({ bucket, ...limits.bucket(principal, bucket) }));
  return buckets[kind](principal.accountId, wishes, clock.now());
}
