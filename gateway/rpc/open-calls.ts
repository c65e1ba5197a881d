import { once } from "node:events";
import { ServerInterceptingCall, type ServerInterceptingCallInterface, type StatusObject } from "@grpc/grpc-js";
import { createStreamSlots } from "../../src/limits/stream-slots.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import { fail, failFields } from "../../src/platform/errors.ts";
import { refuseEmpty } from "../policies/address-bucket.ts";
import { drainAfterResponse } from "../slow-bodies.ts";
import type { TransportParts } from "../transport-parts.ts";
import { boundMessages, peerOfCall, streamOf } from "./grpc-call.ts";

/** Limits of one call: bytes per message, and messages. Reflection clients send a short message for each file. */
const longestMessage = 4 * 1024;
const maxMessages = 100;

/** Maximum open calls per client address. A call holds at most one unread response, of up to 300 kB. */
const maxPerAddress = 32;

interface OpenCallOptions {
  readonly transport: TransportParts;
  readonly openMs: number;
  statusOf(thrown: unknown, requestId: string): StatusObject;
}

/**
 * Creates the interceptor that admits calls of methods outside the registry (health, reflection). Each call draws a
 * token, like a request that reaches no method. While the client has not read the previous responses, the next message
 * waits.
 */
export function limitOpenCalls({ transport, openMs, statusOf }: OpenCallOptions) {
  const streamSlots = createStreamSlots();

  return (inner: ServerInterceptingCallInterface): ServerInterceptingCall => {
    boundMessages(inner, longestMessage);
    const stream = streamOf(inner);
    drainAfterResponse(stream);
    let requestId = "";
    let messages = 0;
    let isRefused = false;
    const refuse = (thrown: unknown): void => {
      if (isRefused) return;
      isRefused = true;
      outer.sendStatus(statusOf(thrown, requestId));
    };
    const late = setTimeout(
      () => refuse(failFields("bad-request", { message: `must arrive within ${openMs / 1_000} s` })),
      openMs,
    );
    stream.once("close", () => clearTimeout(late));
    const outer = new ServerInterceptingCall(inner, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, deliver) => {
            const peer = peerOfCall(inner, metadata, transport);
            requestId = peer.requestId;
            const slot = streamSlots.take(networkOf(peer.clientAddress, { v4: 32, v6: 64 }), maxPerAddress);
            if (!slot.isGranted) {
              refuse(
                rateLimited(
                  `your address has ${slot.taken} open health or reflection calls, the maximum: close one and retry`,
                ),
              );
              return;
            }
            stream.once("close", slot.release);
            transport.dispatcher
              .drawForNoMethod(peer)
              .then(({ state, owner }) => {
                refuseEmpty(state, owner);
                deliver(metadata);
              })
              .catch(refuse);
          },
          onReceiveMessage: (message, deliver) => {
            messages += 1;
            if (messages > maxMessages)
              refuse(rateLimited(`a call accepts at most ${maxMessages} messages: open another call`));
            else if (stream.writableNeedDrain)
              once(stream, "drain").then(
                () => deliver(message),
                () => undefined,
              );
            else deliver(message);
          },
          onReceiveHalfClose: (next) => {
            clearTimeout(late);
            next();
          },
        }),
      // After the status, grpc-js would write the remaining responses of its handler, which breaks the stream.
      sendMessage: (message, next) => {
        if (!isRefused) next(message);
      },
    });
    return outer;
  };
}

function rateLimited(detail: string): Error {
  return fail("rate-limited", { retry_after_seconds: 1 }, { detail, retryAfter: 1 });
}
