import type { Message } from "@bufbuild/protobuf";
import type { App } from "../src/app/app.ts";
import type { ServedMethod, ServedService } from "../src/kernel/registry.ts";
import type { BucketState } from "../src/limits/buckets.ts";
import { type Broadcast, isBroadcast } from "../src/platform/broadcast.ts";
import { errorTable } from "../src/platform/error-table.ts";
import { Failure } from "../src/platform/errors.ts";
import type { GatewayCall } from "./call.ts";
import { createCallMetrics } from "./call-metrics.ts";
import type { ClientBuffers } from "./client-buffers.ts";
import type { Peer } from "./peer.ts";
import { createAddressBucket, createDocumentBucket, type DrawForDocument } from "./policies/address-bucket.ts";
import { drawForNoMethod } from "./policies/authentication.ts";
import { converse, createStreamAllowances, type Received, relayed } from "./policies/conversation.ts";
import { createIdempotency } from "./policies/idempotency.ts";
import { assertEnforced, policiesOf } from "./policies/index.ts";
import { createOpenStreams, untilAborted } from "./policies/open-streams.ts";
import type { AdmissionPolicy, PolicyParts, RunPolicy } from "./policies/policy.ts";
import { drawForMessage, rateLimits, refundOwnBuckets } from "./policies/rate-limits.ts";

/** The way of every call from its transport to its method: through the policies, whatever the transport. */
export interface Gate {
  /** The state of the bucket of a client address, for answers to which no account belongs. */
  lookAtAddress(clientAddress: string): BucketState;
  /** Draws for a request that reaches no method, from its caller's account or its address; says whose bucket that was. */
  drawForNoMethod(peer: Peer): Promise<{ state: BucketState; whose: string }>;
  /** Draws for a document of the service from the `documents` bucket of a client address. */
  drawForDocument: DrawForDocument;
  /** Runs every policy that needs no message. Throws the failure of the first that refuses. */
  admit(call: GatewayCall): Promise<void>;
  /** Runs a unary method. What reads the message is run here, so that what is wrong with it is counted as the call's. */
  unary(call: GatewayCall, request: Message | (() => Message)): Promise<Message>;
  /** Runs a server-streaming method: that of the call, or the one that streams its answer. */
  serverStream(call: GatewayCall, request: Message | (() => Message), served?: ServedMethod): AsyncIterable<Message>;
  /**
   * Opens a stream of which all followers are given the same, and which its door runs by itself. `end` is called when the
   * gateway stops; the door says when the stream is over.
   */
  broadcast(
    call: GatewayCall,
    request: () => Message,
    end: () => void,
  ): Promise<{ readonly messages: Broadcast<Message>; over(): void }>;
  /** Runs a bidirectional method. What could not be read is handed in as well, to be answered in its turn. */
  bidiStream(call: GatewayCall, requests: AsyncIterable<Received>): AsyncIterable<Message>;
  /** Notes what a transport has refused by itself after the call was admitted. Does nothing when the call is over. */
  refuse(call: GatewayCall, thrown: unknown): Promise<void>;
  /** Ends the streams that would last for ever: those that follow end, those that drive finish what they have read. */
  stop(): void;
}

/** How the calls of one method go. */
interface Way {
  readonly admissions: readonly AdmissionPolicy[];
  /** Those of them whose refusal rests on what the row of the bearer says. */
  readonly judgements: readonly AdmissionPolicy[];
  check(message: Message): void;
  run(call: GatewayCall, request: Message, run: () => Promise<Message>): Promise<Message>;
}

/** Puts the policies of a method in a row, once. Throws for an option of the method that nothing enforces. */
function createWay(served: ServedMethod, parts: PolicyParts): Way {
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

/** Runs policies in their order, without waiting where none of them does. */
async function admitBy(admissions: readonly AdmissionPolicy[], call: GatewayCall, parts: PolicyParts): Promise<void> {
  for (const policy of admissions) {
    const waiting = policy.admit(call, parts);
    if (waiting) await waiting;
  }
}

const isForbidden = (thrown: unknown): boolean => thrown instanceof Failure && errorTable[thrown.slug].status === 403;

/** Builds the gate of a gateway over an app and the services of its registry. */
export function createGate(app: App, services: readonly ServedService[], buffers: ClientBuffers): Gate {
  const parts = { ...app, addresses: createAddressBucket(app), runOnce: createIdempotency(app) };
  const ways = new Map(services.flatMap(({ methods }) => methods.map((served) => [served, createWay(served, parts)])));
  const metrics = createCallMetrics(app);
  const streams = createOpenStreams(parts, app.metrics);
  const withAllowance = createStreamAllowances();

  function wayOf(served: ServedMethod): Way {
    const way = ways.get(served);
    if (!way) throw new Error(`${served.name} is not of this gateway's registry`);
    return way;
  }

  /** Ends a call. What it has drawn for its own is given back when it has come to nothing. */
  async function refuse(call: GatewayCall, thrown: unknown): Promise<void> {
    if (!metrics.end(call, thrown)) return;
    await refundOwnBuckets(call, parts);
    showOtherLimiter(call, thrown);
  }

  /** A limiter other than the four buckets of the interface shows `global`, with nothing left until the client may try again. */
  function showOtherLimiter(call: GatewayCall, thrown: unknown): void {
    if (!(thrown instanceof Failure) || thrown.slug !== "rate-limited" || call.shown?.allowed === false) return;
    const { retryAfter: retryAfterSeconds = 1 } = thrown;
    const { capacity } =
      call.accountId === undefined
        ? parts.addresses.look(call.clientAddress)
        : app.limits.bucket(call.principal, "global");
    const resetAt = Math.ceil(app.clock.now() / 1_000) + retryAfterSeconds;
    call.show({ bucket: "global", allowed: false, capacity, remaining: 0, resetAt, retryAfterSeconds });
  }

  function readMessage(served: ServedMethod, request: Message | (() => Message)): Message {
    const message = typeof request === "function" ? request() : request;
    wayOf(served).check(message);
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
      // Its reader has left early.
      metrics.end(call);
    }
  }

  return {
    lookAtAddress: (address) => parts.addresses.look(address),
    drawForNoMethod: (peer) => drawForNoMethod(peer, parts),
    drawForDocument: createDocumentBucket(app),
    async admit(call) {
      const { admissions, judgements } = wayOf(call.served);
      try {
        try {
          await admitBy(admissions, call, parts);
        } catch (thrown) {
          if (!isForbidden(thrown) || !call.bearer) throw thrown;
          // The bearer may have been given more since it was last looked up.
          call.principal = await app.bearers.lookUpAfresh(call.bearer);
          await admitBy(judgements, call, parts);
        }
        buffers.assertRoom(call);
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    async unary(call, request) {
      const { served } = call;
      try {
        if (served.kind !== "unary") throw new Error(`${served.name} is not unary`);
        const message = readMessage(served, request);
        const answer = await wayOf(served).run(call, message, () => served.run(call, message));
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
        if (!isBroadcast(messages)) throw new Error(`${served.name} does not give all who follow the same`);
        const leave = await streams.seat(call, end);
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
          return served.rules.relay || served.rules.duplex
            ? withAllowance(call.principal.accountId, (allowance) => relayed(call, served, read, allowance))
            : converse({
                call,
                served,
                requests: read,
                async draw(tokens) {
                  buffers.assertRoom(call);
                  await drawForMessage(call, parts, tokens);
                },
                check: wayOf(served).check,
                errorsBase,
              });
        }),
      );
    },
    refuse,
    stop: () => streams.stop(),
  };
}
