import type { Message } from "@bufbuild/protobuf";
import type { App } from "../src/app/app.ts";
import type { Principal } from "../src/kernel/call.ts";
import type { ServedMethod, ServedService } from "../src/kernel/registry.ts";
import type { BucketState } from "../src/limits/buckets.ts";
import { type Broadcast, isBroadcast } from "../src/platform/broadcast.ts";
import { errorTable } from "../src/platform/error-table.ts";
import { Failure } from "../src/platform/errors.ts";
import { createCallMetrics } from "./call-metrics.ts";
import type { ClientBuffers } from "./client-buffers.ts";
import type { GatewayCall } from "./gateway-call.ts";
import type { Peer } from "./peer.ts";
import { createAddressBucket, createDocumentBucket, type DrawForDocument } from "./policies/address-bucket.ts";
import { drawForNoMethod, identify } from "./policies/authentication.ts";
import { converse, relayed, type StreamInput } from "./policies/conversation.ts";
import { createIdempotencyPolicy } from "./policies/idempotency-policy.ts";
import { assertEnforced, policiesOf } from "./policies/index.ts";
import { type AwaitTurn, createMessageAllowances } from "./policies/message-allowance.ts";
import { createOpenStreams, untilAborted } from "./policies/open-streams.ts";
import type { AdmissionPolicy, PolicyParts, RunPolicy } from "./policies/policy.ts";
import { drawForMessage, rateLimits, refundOwnBuckets } from "./policies/rate-limits.ts";

/** Passes calls of all transports through the policies to their methods. */
export interface CallDispatcher {
  /** Number of open streams, over all transports. */
  readonly openStreams: number;
  /** Returns the bucket state of a client address, for responses that belong to no account. */
  peekAddress(clientAddress: string): BucketState;
  /** Draws a token of the caller's account or address for a request that reaches no method. */
  drawForNoMethod(peer: Peer): Promise<{ state: BucketState; whose: string }>;
  /** Identifies the sender of a request that reaches no method. `show` receives the bucket of a refused sender. */
  identify(peer: Peer, show: (state: BucketState) => void): Promise<Principal>;
  /** Draws a token for a document from the `documents` bucket of a client address. */
  drawForDocument: DrawForDocument;
  /** Runs all policies that need no message. Throws the failure of the first policy that refuses. */
  admit(call: GatewayCall): Promise<void>;
  /** Waits before a message is parsed. The messages of bidirectional streams that are unread wait in `bidiStream`. */
  readonly awaitTurn: AwaitTurn;
  /** Runs a unary method. Calls `request` here if it is a function, so that parse errors end the call. */
  unary(call: GatewayCall, request: Message | (() => Message)): Promise<Message>;
  /** Runs a server-streaming method: that of the call, or `served`, which streams the response of a unary method. */
  serverStream(call: GatewayCall, request: Message | (() => Message), served?: ServedMethod): AsyncIterable<Message>;
  /**
   * Opens a stream that sends the same messages to all followers. Its transport writes the messages, and calls `over`
   * when the stream has ended. Calls `end` when the gateway stops.
   */
  broadcast(
    call: GatewayCall,
    request: () => Message,
    end: () => void,
  ): Promise<{ readonly messages: Broadcast<Message>; over(): void }>;
  /** Runs a bidirectional method. Unreadable messages are part of `requests`, and are answered in order. */
  bidiStream(call: GatewayCall, requests: AsyncIterable<StreamInput>): AsyncIterable<Message>;
  /** Records a failure that a transport raised after admission. Does nothing if the call has ended. */
  refuse(call: GatewayCall, thrown: unknown): Promise<void>;
  /** Ends unbounded streams. Subscriptions end at once; streams driven by clients finish the messages already read. */
  stop(): void;
}

/** Policies of one method. */
interface MethodPolicies {
  readonly admissions: readonly AdmissionPolicy[];
  /** Admission policies that depend on the stored permissions of the bearer. */
  readonly judgements: readonly AdmissionPolicy[];
  check(message: Message): void;
  run(call: GatewayCall, request: Message, run: () => Promise<Message>): Promise<Message>;
}

/** Orders the policies of a method, once. Throws for a method option that no policy enforces. */
function orderPolicies(served: ServedMethod, parts: PolicyParts): MethodPolicies {
  assertEnforced(served);
  const own = policiesOf(served);
  const admissions = own.filter((policy) => "admit" in policy);
  const checks = own.filter((policy) => "check" in policy);
  const wrappers = own.filter((policy): policy is RunPolicy => "around" in policy);
  return {
    admissions,
    judgements: admissions.slice(admissions.indexOf(rateLimits) + 1),
    check(message) {
      for (const policy of checks) policy.check(served, message);
    },
    run: (call, request, run) =>
      wrappers.reduceRight((inner, policy) => () => policy.around(call, request, inner, parts), run)(),
  };
}

/** Runs policies in order. Yields to the event loop only if a policy is asynchronous. */
async function admitBy(admissions: readonly AdmissionPolicy[], call: GatewayCall, parts: PolicyParts): Promise<void> {
  for (const policy of admissions) {
    const waiting = policy.admit(call, parts);
    if (waiting) await waiting;
  }
}

const isForbidden = (thrown: unknown): boolean => thrown instanceof Failure && errorTable[thrown.slug].status === 403;

/** Creates the dispatcher of a gateway over an app and the services of its registry. */
export function createCallDispatcher(
  app: App,
  services: readonly ServedService[],
  buffers: ClientBuffers,
): CallDispatcher {
  const parts = { ...app, addresses: createAddressBucket(app), runOnce: createIdempotencyPolicy(app) };
  const policiesByMethod = new Map(
    services.flatMap(({ methods }) => methods.map((served) => [served, orderPolicies(served, parts)])),
  );
  const metrics = createCallMetrics(app);
  const streams = createOpenStreams(parts, app.metrics);
  const awaitTurn = createMessageAllowances(app.clock);

  function policiesFor(served: ServedMethod): MethodPolicies {
    const policies = policiesByMethod.get(served);
    if (!policies) throw new Error(`${served.name} is not in this gateway's registry`);
    return policies;
  }

  /** Ends a failed call. Refunds the tokens of the method's own buckets if the operation has not started. */
  async function refuse(call: GatewayCall, thrown: unknown): Promise<void> {
    if (!metrics.end(call, thrown)) return;
    await refundOwnBuckets(call, parts);
    showOtherLimiter(call, thrown);
  }

  /** Shows a limiter other than the four public buckets as `global` with no tokens until the retry time. */
  function showOtherLimiter(call: GatewayCall, thrown: unknown): void {
    if (!(thrown instanceof Failure) || thrown.slug !== "rate-limited" || call.shown?.allowed === false) return;
    const { retryAfter: retryAfterSeconds = 1 } = thrown;
    const { capacity } =
      call.accountId === undefined
        ? parts.addresses.peek(call.clientAddress)
        : app.limits.bucket(call.principal, "global");
    const resetAt = Math.ceil(app.clock.now() / 1_000) + retryAfterSeconds;
    call.show({ bucket: "global", allowed: false, capacity, remaining: 0, resetAt, retryAfterSeconds });
  }

  function readMessage(served: ServedMethod, request: Message | (() => Message)): Message {
    const message = typeof request === "function" ? request() : request;
    policiesFor(served).check(message);
    return message;
  }

  async function* stream(call: GatewayCall, messages: () => AsyncIterable<Message>): AsyncGenerator<Message> {
    try {
      yield* messages();
      metrics.end(call);
    } catch (thrown) {
      await refuse(call, thrown);
      throw thrown;
    } finally {
      // Records the end if the reader has stopped early.
      metrics.end(call);
    }
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
      const { admissions, judgements } = policiesFor(call.served);
      try {
        try {
          await call.within(() => admitBy(admissions, call, parts));
        } catch (thrown) {
          if (!isForbidden(thrown) || !call.bearer) throw thrown;
          // The bearer may have gained permissions since its last lookup.
          call.principal = await app.bearers.lookUpFresh(call.bearer);
          await call.within(() => admitBy(judgements, call, parts));
        }
        buffers.assertRoom(call);
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    awaitTurn,
    async unary(call, request) {
      const { served } = call;
      try {
        if (served.kind !== "unary") throw new Error(`${served.name} is not unary`);
        const message = readMessage(served, request);
        const { run } = policiesFor(served);
        const answer = await call.within(() => run(call, message, () => served.run(call, message)));
        metrics.end(call);
        return answer;
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    serverStream(call, request, served = call.served) {
      return stream(call, () => {
        if (served.kind !== "server_streaming") throw new Error(`${served.name} is not a server stream`);
        const message = readMessage(served, request);
        return streams.run(call, () => served.run(call, message));
      });
    },
    async broadcast(call, request, end) {
      const { served } = call;
      try {
        if (served.kind !== "server_streaming") throw new Error(`${served.name} is not a server stream`);
        const messages = served.run(call, readMessage(served, request));
        if (!isBroadcast(messages)) throw new Error(`${served.name} does not broadcast`);
        const leave = await streams.slot(call, end);
        const over = (): void => {
          leave();
          metrics.end(call);
        };
        return { messages, over };
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    bidiStream(call, requests) {
      const { served } = call;
      if (served.kind !== "bidi_streaming") throw new Error(`${served.name} is not bidirectional`);
      const { errorsBase } = app.config;
      return stream(call, () =>
        streams.run(call, (noMore) => {
          const read = untilAborted(requests, noMore);
          const awaitTurnOf = (bytes: number) => awaitTurn(call, bytes);
          return served.rules.relay || served.rules.duplex
            ? relayed(call, served, read, awaitTurnOf)
            : converse({
                call,
                served,
                requests: read,
                awaitTurn: awaitTurnOf,
                async draw(tokens) {
                  buffers.assertRoom(call);
                  await drawForMessage(call, parts, tokens);
                },
                check: policiesFor(served).check,
                errorsBase,
              });
        }),
      );
    },
    refuse,
    stop: () => streams.stop(),
  };
}
