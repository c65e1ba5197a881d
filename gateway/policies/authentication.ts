import type { Bearer } from "../../src/kernel/bearer-kind.ts";
import type { Principal } from "../../src/kernel/call.ts";
import type { BucketState } from "../../src/limits/buckets.ts";
import { errorTable } from "../../src/platform/error-table.ts";
import { asFailure } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../gateway-call.ts";
import type { Peer } from "../peer.ts";
import { refuseEmpty } from "./address-bucket.ts";
import type { AdmissionPolicy, PolicyParts } from "./policy.ts";

const bucketOwner = "your address (without a valid key)";

/**
 * Identifies the caller. A recently verified bearer passes. Every other bearer first draws a token of the client
 * address, so that parallel guesses are limited; a valid bearer refunds the token. If the address has no tokens left,
 * bearers are still looked up in batches, so that other clients of the address cannot lock out a valid bearer. An
 * invalid bearer then receives only `rate-limited`. Calls of public methods only draw a token of the client address.
 */
export const authentication: AdmissionPolicy = {
  name: "authentication",
  enforces: ["public"],
  appliesTo: () => true,
  problems: ({ rules }) =>
    rules.public ? ["rate-limited"] : ["rate-limited", "unauthorized", "invalid-key", "revoked-key", "expired-key"],
  describe: ({ rules }) => (rules.public ? "Needs no key." : ""),
  admit(call, parts) {
    if (call.served.rules.public) return drawFromAddress(call, parts);
    try {
      call.bearer = parts.bearers.read(call.header("authorization"));
    } catch (thrown) {
      return drawFromAddress(call, parts).then(() => Promise.reject(thrown));
    }
    const known = parts.bearers.peek(call.bearer);
    if (!known) return findCaller(call, call.bearer, parts);
    call.principal = known;
    recordUse(known, parts);
    return undefined;
  },
};

/**
 * Identifies the sender of a request that reaches no method. If this fails, `show` has received the state of the bucket
 * of the client address.
 */
export async function identify(
  { header, clientAddress }: Peer,
  parts: PolicyParts,
  show: (state: BucketState) => void,
): Promise<Principal> {
  const sender = { clientAddress, show };
  let bearer: Bearer;
  try {
    bearer = parts.bearers.read(header("authorization"));
  } catch (thrown) {
    await drawFromAddress(sender, parts);
    throw thrown;
  }
  const principal = parts.bearers.peek(bearer) ?? (await lookUp(sender, bearer, parts));
  recordUse(principal, parts);
  return principal;
}

type Sender = Pick<GatewayCall, "clientAddress" | "show">;

async function drawFromAddress(sender: Sender, { addresses }: PolicyParts): Promise<void> {
  const state = await addresses.draw(sender.clientAddress);
  sender.show(state);
  refuseEmpty(state, bucketOwner);
}

async function findCaller(call: GatewayCall, bearer: Bearer, parts: PolicyParts): Promise<void> {
  call.principal = await lookUp(call, bearer, parts);
  recordUse(call.principal, parts);
}

async function lookUp(sender: Sender, bearer: Bearer, parts: PolicyParts): Promise<Principal> {
  const { addresses, bearers } = parts;
  const { clientAddress } = sender;
  const state = await addresses.draw(clientAddress);
  const refund = () => state.allowed && addresses.refund(clientAddress);
  let principal: Principal;
  try {
    principal = await bearers.lookUp(bearer);
  } catch (thrown) {
    sender.show(state);
    const isOurFault = errorTable[asFailure(thrown).slug].status >= 500;
    if (isOurFault) await refund();
    else refuseEmpty(state, bucketOwner);
    throw thrown;
  }
  await refund();
  return principal;
}

function recordUse(principal: Principal, { apiKeys }: PolicyParts): void {
  if (principal.kind === "key") apiKeys.recordUse(principal.keyId);
}

/**
 * Draws a token for a request that reaches no method, from the `global` bucket of the caller's account if the bearer is
 * valid, else of the address. Returns the new state and the owner of the bucket.
 */
export async function drawForNoMethod(
  { header, clientAddress }: Peer,
  parts: PolicyParts,
): Promise<{ state: BucketState; owner: string }> {
  const { bearers, buckets, limits, clock, addresses } = parts;
  const caller = await callerOf(header("authorization"), bearers);
  if (!caller) return { state: await addresses.draw(clientAddress), owner: "your address" };
  const { accountId, tier } = caller;
  const bucketRequest = { bucket: "global", ...limits.bucket(caller, "global") };
  const [state = buckets.peek(accountId, bucketRequest, clock.now())] = await buckets.take(
    accountId,
    [bucketRequest],
    clock.now(),
  );
  return { state, owner: `tier ${tier}` };
}

async function callerOf(
  authorization: string | undefined,
  bearers: PolicyParts["bearers"],
): Promise<Principal | undefined> {
  try {
    const bearer = bearers.read(authorization);
    return bearers.peek(bearer) ?? (await bearers.lookUp(bearer));
  } catch {
    // The bearer is invalid or cannot be verified now, so the token is drawn from the address.
    return undefined;
  }
}
