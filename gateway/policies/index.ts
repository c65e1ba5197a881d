import { setMaxListeners } from "node:events";
import type { Message } from "@bufbuild/protobuf";
import type { App } from "../../src/app.ts";
import type { BucketState } from "../../src/limits/buckets.ts";
import { validate } from "../../src/platform/validation.ts";
import type { ServedMethod } from "../../src/registry.ts";
import type { GatewayCall } from "../call.ts";
import { httpRouteOf } from "../rest/http-rule.ts";
import { untilStopped } from "../until-stopped.ts";
import { createAddressBucket, refuseEmpty } from "./address-bucket.ts";
import { authenticate } from "./authenticate.ts";
import { authorize } from "./authorize.ts";
import { createIdempotency } from "./idempotency.ts";
import { drawForMessage, limit } from "./limit.ts";

/**
 * What stands between a transport and the methods, in the order that the contract gives: request id (the transport's),
 * address bucket, authentication, rate limits, scope, validation, idempotency, the method.
 */
export interface Gate {
  /** The state of the bucket of a client address, for answers to which no account belongs. */
  lookAtAddress(clientAddress: string): BucketState;
  /** Draws from the bucket of a client address, and throws `rate-limited` when it is empty. */
  drawFromAddress(clientAddress: string): Promise<void>;
  /** Runs every policy that needs no message. Throws the failure of the first that refuses. */
  admit(call: GatewayCall): Promise<void>;
  /** Runs a unary method. */
  unary(call: GatewayCall, request: Message): Promise<Message>;
  /** Runs a server-streaming method: that of the call, or the one that streams its answer. */
  serverStream(call: GatewayCall, request: Message, served?: ServedMethod): AsyncIterable<Message>;
  /** Runs a bidirectional method. It validates its messages itself: a bad one fails alone, not the stream. */
  bidiStream(call: GatewayCall, requests: AsyncIterable<Message>): AsyncIterable<Message>;
  /** Ends the streams that would last for ever: those that follow end, those that drive finish what they have read. */
  stop(): void;
}

/** Builds the policies over an app. */
export function createGate(app: App): Gate {
  const addresses = createAddressBucket(app);
  const runOnce = createIdempotency(app);
  const stopping = new AbortController();
  // Every open stream listens to it.
  setMaxListeners(0, stopping.signal);
  return {
    lookAtAddress: (address) => addresses.look(address),
    drawFromAddress: async (address) => refuseEmpty(await addresses.draw(address), "your address"),
    async admit(call) {
      await authenticate(app, addresses, call);
      const drawing = limit(app, call);
      if (drawing) {
        await drawing;
      }
      authorize(call);
    },
    unary(call, request) {
      const { served } = call;
      validate(served.method.input, request);
      if (served.kind !== "unary") {
        throw new Error(`${served.method} is not unary`);
      }
      return runOnce(call, request, () => served.run(call, request));
    },
    serverStream(call, request, served = call.served) {
      validate(served.method.input, request);
      if (served.kind !== "server_streaming") {
        throw new Error(`${served.method} is not a server stream`);
      }
      const messages = served.run(call, request);
      return httpRouteOf(served.method) ? follow(call, messages, stopping.signal) : messages;
    },
    bidiStream(call, requests) {
      const { served } = call;
      if (served.kind !== "bidi_streaming") {
        throw new Error(`${served.method} is not bidirectional`);
      }
      call.drawWith((bucket) => drawForMessage(app, call, bucket));
      return served.run(call, untilStopped(requests, stopping.signal));
    },
    stop: () => stopping.abort(),
  };
}

/** A stream that has a GET route follows something, and so has no end of its own. */
async function* follow(
  call: GatewayCall,
  messages: AsyncIterable<Message>,
  stopping: AbortSignal,
): AsyncGenerator<Message> {
  try {
    yield* untilStopped(messages, stopping);
  } finally {
    call.cancel();
  }
}
