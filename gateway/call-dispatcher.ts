import type { Message } from "@bufbuild/protobuf";
import type { App } from "../src/app/app.ts";
import type { Principal } from "../src/kernel/call.ts";
import type { ServedService } from "../src/kernel/registry.ts";
import type { BucketState } from "../src/limits/buckets.ts";
import { createCallMetrics } from "./call-metrics.ts";
import type { ClientBuffers } from "./client-buffers.ts";
import type { GatewayCall } from "./gateway-call.ts";
import { createMethodPolicies, type MessageSource } from "./method-policies.ts";
import { createMethodStreams, type MethodStreams } from "./method-streams.ts";
import type { Peer } from "./peer.ts";
import { createAddressBucket, createDocumentBucket, type DrawForDocument } from "./policies/address-bucket.ts";
import { drawForNoMethod, identify } from "./policies/authentication.ts";
import { createIdempotencyPolicy } from "./policies/idempotency-policy.ts";
import { type AwaitAllowance, createMessageAllowances } from "./policies/message-allowance.ts";
import { createOpenStreams } from "./policies/open-streams.ts";
import { refundOwnBuckets, showOtherLimiter } from "./policies/rate-limits.ts";

/** Passes calls of all transports through the policies to their methods. */
export interface CallDispatcher extends MethodStreams {
  /** Number of open streams, over all transports. */
  readonly openStreams: number;
  /** Returns the state of the `global` bucket of a client address, for headers of responses without another bucket. */
  peekAddress(clientAddress: string): BucketState;
  /**
   * Draws a token of the caller's account or address for a request that reaches no method. Resolves with the new state
   * and the owner of the bucket.
   */
  drawForNoMethod(peer: Peer): Promise<{ state: BucketState; owner: string }>;
  /**
   * Identifies the sender of a request that reaches no method. If this fails, `show` has received the state of the
   * bucket of the client address.
   */
  identify(peer: Peer, show: (state: BucketState) => void): Promise<Principal>;
  /** Draws a token for a document from the `documents` bucket of a client address. */
  drawForDocument: DrawForDocument;
  /**
   * Runs all policies that need no message. Throws the failure of the first policy that refuses, or `rate-limited` if
   * the gateway holds too many bytes for the caller.
   */
  admit(call: GatewayCall): Promise<void>;
  /**
   * Waits until a message may be parsed. Transports call this function before they parse a message, except for messages
   * of `bidiStream`.
   */
  readonly awaitAllowance: AwaitAllowance;
  /**
   * Runs a unary method. A `request` that is a function is called within the call, so that parse errors end the call.
   */
  unary(call: GatewayCall, request: MessageSource): Promise<Message>;
  /** Ends a call with a failure that its transport raised. Does nothing if the call has ended. */
  refuse(call: GatewayCall, thrown: unknown): Promise<void>;
  /**
   * Ends subscriptions at once. Bidirectional streams read no more messages, and end after the responses to the
   * messages already read.
   */
  stop(): void;
}

/** Creates the dispatcher of an app's gateway for the given services. */
export function createCallDispatcher(
  app: App,
  services: readonly ServedService[],
  buffers: ClientBuffers,
): CallDispatcher {
  const parts = { ...app, addresses: createAddressBucket(app), runOnce: createIdempotencyPolicy(app) };
  const policies = createMethodPolicies(services, parts);
  const metrics = createCallMetrics(app);
  const streams = createOpenStreams(parts, app.metrics);
  const awaitAllowance = createMessageAllowances(app.clock);

  /** Ends a failed call. Refunds the tokens of the method's own buckets, unless the method has charged the call. */
  async function refuse(call: GatewayCall, thrown: unknown): Promise<void> {
    if (!metrics.end(call, thrown)) return;
    await refundOwnBuckets(call, parts);
    showOtherLimiter(call, parts, thrown);
  }

  return {
    get openStreams() {
      return streams.size;
    },
    peekAddress: (address) => parts.addresses.peek(address),
    drawForNoMethod: (peer) => drawForNoMethod(peer, parts),
    identify: (peer, show) => identify(peer, parts, show),
    drawForDocument: createDocumentBucket(app),
    async admit(call) {
      try {
        await policies.admit(call);
        buffers.assertRoom(call);
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    awaitAllowance,
    async unary(call, request) {
      const { served } = call;
      try {
        if (served.kind !== "unary") throw new Error(`${served.name} is not unary`);
        const message = policies.read(served, request);
        const answer = await call.within(() => policies.run(call, message, () => served.run(call, message)));
        metrics.end(call);
        return answer;
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    ...createMethodStreams({ parts, policies, streams, metrics, buffers, awaitAllowance, refuse }),
    refuse,
    stop: () => streams.stop(),
  };
}
