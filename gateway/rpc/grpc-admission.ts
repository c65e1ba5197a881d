import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type StatusObject,
} from "@grpc/grpc-js";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { failFields } from "../../src/platform/errors.ts";
import { GatewayCall } from "../gateway-call.ts";
import { longestMessage } from "../message-size.ts";
import { drainAfterResponse } from "../slow-bodies.ts";
import { answerHeaders, type TransportParts } from "../transport-parts.ts";
import { boundMessages, countMemory, peerOfCall, streamOf } from "./grpc-call.ts";
import { limitOpenCalls } from "./open-calls.ts";

/** Options of the admission of gRPC calls. */
export interface GrpcAdmissionOptions {
  readonly transport: TransportParts;
  /** Methods of the registry by path. Other methods (health, reflection) need no key. */
  readonly methods: ReadonlyMap<string, ServedMethod>;
  /** Milliseconds until the message of a unary or server-streaming call must be complete. */
  readonly messageMs: number;
  /** Milliseconds until the request of a call outside the registry must be complete. */
  readonly openMs: number;
  statusOf(thrown: unknown, requestId: string): StatusObject;
}

const callKey = "pilothouse.call";

/** Returns the gateway call of a grpc-js call. Throws if the call has not passed the policies. */
export function callOf(metadata: Metadata): GatewayCall {
  const call: unknown = metadata.getOpaque(callKey);
  if (!(call instanceof GatewayCall)) throw new Error("expected a call that passed the policies");
  return call;
}

/**
 * Runs the policies on the headers of a call, so that clients without a key cannot make the service read a message. The
 * common response headers are sent when the response starts, so that they show the outcome.
 */
export function admission(options: GrpcAdmissionOptions): ServerInterceptor {
  const { transport, methods, messageMs, statusOf } = options;
  const admitOpen = limitOpenCalls(options);
  return ({ path, requestStream }, inner) => {
    const served = methods.get(path);
    if (!served) return admitOpen(inner);
    boundMessages(inner, longestMessage(served));
    drainAfterResponse(streamOf(inner));
    let call: GatewayCall | undefined;
    let lateness: NodeJS.Timeout | undefined;
    let isAnswered = false;
    let isCancelled = false;
    const outer = new ServerInterceptingCall(inner, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, deliver) => {
            const arrived = arrive(served, metadata, inner, transport);
            call = arrived;
            metadata.setOpaque(callKey, arrived);
            const refuse = (thrown: unknown): void => outer.sendStatus(statusOf(thrown, arrived.requestId));
            transport.dispatcher.admit(arrived).then(() => {
              countMemory(inner, arrived, transport);
              if (!requestStream && !isCancelled) {
                const failure = failFields("bad-request", { message: `must arrive within ${messageMs / 1_000} s` });
                lateness = setTimeout(refuse, messageMs, failure);
              }
              deliver(metadata);
            }, refuse);
          },
          onReceiveHalfClose: (next) => {
            clearTimeout(lateness);
            next();
          },
          onCancel: () => {
            isCancelled = true;
            clearTimeout(lateness);
            call?.cancel();
          },
        }),
      sendMetadata: (metadata, next) => {
        isAnswered = true;
        for (const [name, value] of Object.entries(call ? answerHeaders(transport, call, call) : {})) {
          metadata.set(name, value);
        }
        next(metadata);
      },
      sendStatus: (status, next) => {
        if (!isAnswered) outer.sendMetadata(new Metadata());
        next(status);
        if (call) transport.accessLog?.onGrpcCall(call, path);
      },
    });
    return outer;
  };
}

/** Creates the gateway call of a grpc-js request. */
function arrive(
  served: ServedMethod,
  metadata: Metadata,
  inner: ServerInterceptingCallInterface,
  transport: TransportParts,
): GatewayCall {
  const peer = peerOfCall(inner, metadata, transport);
  const remaining = Number(inner.getDeadline()) - Date.now();
  return new GatewayCall(served, peer, Number.isFinite(remaining) ? remaining : undefined);
}
