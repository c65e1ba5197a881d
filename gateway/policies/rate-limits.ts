import { isFieldSet } from "@bufbuild/protobuf";
import type { BucketState } from "../../src/limits/buckets.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { Failure } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../gateway-call.ts";
import { refuseEmpty } from "./address-bucket.ts";
import type { AdmissionPolicy, PolicyParts, RunPolicy } from "./policy.ts";

/**
 * Draws one token from `global` and from each bucket of the method; with `bucketsUnless`, only from `global`. If a
 * bucket is empty, draws none and throws `rate-limited`. The headers show the most specific bucket, or the empty
 * bucket.
 */
export const rateLimits: AdmissionPolicy = {
  name: "rate limits",
  enforces: ["buckets"],
  appliesTo: ({ rules }) => !rules.public,
  problems: () => ["rate-limited"],
  describe({ rules: { buckets, bucketsUnless: field } }) {
    if (buckets.length === 0) return "";
    const names = buckets.map((bucket) => `\`${bucket}\``).join(" and ");
    return `Draws from the rate-limit bucket ${names} besides \`global\`${field && `, unless the request has \`${field}\``}.`;
  },
  admit(call, parts) {
    const { buckets, bucketsUnless } = call.served.rules;
    const states = change("take", call, parts, bucketsUnless === "" ? ["global", ...buckets] : ["global"]);
    return states instanceof Promise ? states.then((drawn) => settle(call, drawn)) : settle(call, states);
  },
};

/** Draws from the method's buckets if the parsed request lacks the field of `bucketsUnless`. */
export const rateLimitsOfRequest: RunPolicy = {
  name: "rate limits of the request",
  enforces: ["bucketsUnless"],
  appliesTo: ({ rules }) => rules.bucketsUnless !== "",
  problems: () => ["rate-limited"],
  async around(call, request, run, parts) {
    const { method, rules } = call.served;
    const field = method.input.fields.find(({ name }) => name === rules.bucketsUnless);
    if (!field) throw new Error(`${method} has no field ${rules.bucketsUnless}`);
    if (isFieldSet(request, field)) return run();
    settle(call, await change("take", call, parts, rules.buckets));
    call.hasDrawn = true;
    return run();
  },
};

function settle(call: GatewayCall, states: readonly BucketState[]): void {
  const shown = states.find(({ allowed }) => !allowed) ?? states.at(-1);
  if (!shown) return;
  call.show(shown);
  refuseEmpty(shown, `tier ${call.principal.tier}`);
  call.hasDrawn = call.served.rules.bucketsUnless === "";
}

/**
 * Milliseconds between draws of a stream that waits for a token. The slowest bucket of a stream refills a token every
 * 17 ms.
 */
const pollMs = 20;

/**
 * Draws tokens for one message of a stream. A stream with a bucket of its own waits while the bucket is empty. On other
 * streams the message is refused, and its tokens are refunded.
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
      await sleep(pollMs, call.signal);
      call.signal.throwIfAborted();
    }
  }
}

/** Refunds the tokens that a call drew from its method's own buckets, unless the method has charged the call. */
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
  const bucketRequests = names.map((bucket) => ({ bucket, ...limits.bucket(principal, bucket) }));
  return buckets[kind](principal.accountId, bucketRequests, clock.now());
}

/**
 * If a limiter without a public bucket refused the call, the headers show `global` without tokens until the retry time.
 */
export function showOtherLimiter(call: GatewayCall, { addresses, limits, clock }: PolicyParts, thrown: unknown): void {
  if (!(thrown instanceof Failure) || thrown.slug !== "rate-limited" || call.shown?.allowed === false) return;
  const { retryAfter: retryAfterSeconds = 1 } = thrown;
  const { capacity } =
    call.accountId === undefined ? addresses.peek(call.clientAddress) : limits.bucket(call.principal, "global");
  const resetAt = Math.ceil(clock.now() / 1_000) + retryAfterSeconds;
  call.show({ bucket: "global", allowed: false, capacity, remaining: 0, resetAt, retryAfterSeconds });
}
