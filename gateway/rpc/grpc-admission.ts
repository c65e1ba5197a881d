import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type StatusObject,
} from "@grpc/grpc-js";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { failFields } from "../../src/platform/errors.ts";
import { GatewayCall } from "../call.ts";
import { answerHeaders, type Door } from "../door.ts";
import { longestMessage } from "../message-size.ts";
import { boundMessages, countMemory, forgetUnfinished, peerOfCall } from "./grpc-call.ts";
import { openCalls } from "./open-calls.ts";

/** How calls are let in. */
export interface GrpcAdmissionOptions {
  readonly door: Door;
  /** The methods of the registry by path; what else the server has (health, reflection) needs no key. */
  readonly methods: ReadonlyMap<string, ServedMethod>;
  /** The message of a call that takes one has to come within so many milliseconds. */
  readonly messageMs: number;
  /** The request of a call outside the registry has to be complete within so many milliseconds. */
  readonly openMs: number;
  statusOf(thrown: unknown, requestId: string): StatusObject;
}

const callKey = "pilothouse.call";

/** The call of the gateway that a call of grpc-js was let in as. */
export function callOf(metadata: Metadata): GatewayCall {
  const call: unknown = metadata.getOpaque(callKey);
  if (!(call instanceof GatewayCall)) throw new Error("the call has not passed its policies");
  return call;
}

/**
 * Runs the policies when the headers of a call have come: nobody without a key makes the service read a message. The
 * headers that every answer has go out when the answer begins, so that they show what became of the call.
 */
export function admission(options: GrpcAdmissionOptions): ServerInterceptor {
  const { door, methods, messageMs, statusOf } = options;
  const admitOpen = openCalls(options);
  return ({ path, requestStream }, inner) => {
    const served = methods.get(path);
    if (!served) return admitOpen(inner);
    boundMessages(inner, longestMessage(served));
    forgetUnfinished(inner);
    let call: GatewayCall | undefined;
    let lateness: NodeJS.Timeout | undefined;
    let isAnswered = false;
    let isCancelled = false;
    const outer = new ServerInterceptingCall(inner, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, deliver) => {
            const arrived = arrive(served, metadata, inner, door);
            call = arrived;
            metadata.setOpaque(callKey, arrived);
            const refuse = (thrown: unknown): void => outer.sendStatus(statusOf(thrown, arrived.requestId));
            door.gate.admit(arrived).then(() => {
              countMemory(inner, arrived, door);
              if (!requestStream && !isCancelled) {
                const failure = failFields("bad-request", { message: "did not come in time" });
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
        for (const [name, value] of Object.entries(call ? answerHeaders(door, call, call) : {})) {
          metadata.set(name, value);
        }
        next(metadata);
      },
      sendStatus: (status, next) => {
        if (!isAnswered) outer.sendMetadata(new Metadata());
        next(status);
      },
    });
    return outer;
  };
}

/** Makes the call that a request of grpc-js stands for. */
function arrive(
  served: ServedMethod,
  metadata: Metadata,
  inner: ServerInterceptingCallInterface,
  door: Door,
): GatewayCall {
  const peer = peerOfCall(inner, metadata, door);
  const remaining = Number(inner.getDeadline()) - Date.now();
  return new GatewayCall(served, peer, Number.isFinite(remaining) ? remaining : undefined);
}
