import type { ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  type StatusObject,
} from "@grpc/grpc-js";
import { failFields } from "../../src/platform/errors.ts";
import type { ServedMethod } from "../../src/registry.ts";
import { GatewayCall } from "../call.ts";
import { answerHeaders, type Door } from "../door.ts";
import { longestMessage } from "../message-size.ts";
import { lingerMs } from "../slow-bodies.ts";

/** How calls are let in. */
export interface GrpcAdmissionOptions {
  readonly door: Door;
  /** The methods of the registry by path; what else the server has (health, reflection) is open to all. */
  readonly methods: ReadonlyMap<string, ServedMethod>;
  /** The message of a call that takes one has to come within so many milliseconds. */
  readonly messageMs: number;
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
export function admission({ door, methods, messageMs, statusOf }: GrpcAdmissionOptions): ServerInterceptor {
  return ({ path, requestStream }, inner) => {
    const served = methods.get(path);
    if (!served) return new ServerInterceptingCall(inner);
    boundMessages(inner, longestMessage(served));
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
            const refuse = (thrown: unknown): void => {
              outer.sendStatus(statusOf(thrown, arrived.requestId));
              forgetRequest(inner);
            };
            door.gate.admit(arrived).then(() => {
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
  const header = (name: string): string | undefined => metadata.get(name).map(String).join(", ") || undefined;
  const peer = door.resolvePeer(inner.getConnectionInfo().remoteAddress, header);
  const remaining = Number(inner.getDeadline()) - Date.now();
  return new GatewayCall(served, peer, Number.isFinite(remaining) ? remaining : undefined);
}

/**
 * Bounds the messages of a call, packed and unpacked: the server has one bound for all methods. It is set from inside; a
 * test tells when that has moved.
 */
function boundMessages(inner: ServerInterceptingCallInterface, bytes: number): void {
  const decoder: unknown = Reflect.get(inner, "decoder");
  if (!(decoder instanceof Object && "maxReadMessageLength" in decoder && "maxReceiveMessageSize" in inner)) {
    throw new Error("grpc-js keeps the bound of messages elsewhere");
  }
  decoder.maxReadMessageLength = bytes;
  inner.maxReceiveMessageSize = bytes;
}

/**
 * Ends the stream of a call that has its status, and its connection, when the client still has not ended its request: it
 * would keep both for ever. grpc-js shows no stream, so it is taken from inside; a test tells when that has moved.
 */
function forgetRequest(inner: ServerInterceptingCallInterface): void {
  const stream: unknown = Reflect.get(inner, "stream");
  if (!isHttp2Stream(stream)) throw new Error("grpc-js keeps the stream of a call elsewhere");
  const end = (): void => {
    if (!stream.closed) {
      stream.session?.close();
      stream.close();
    }
  };
  setTimeout(end, lingerMs).unref();
}

function isHttp2Stream(value: unknown): value is ServerHttp2Stream {
  return value instanceof Duplex && "session" in value && "close" in value;
}
