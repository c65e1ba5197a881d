import { constants, type ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import type { Metadata, ServerInterceptingCallInterface } from "@grpc/grpc-js";
import type { GatewayCall } from "../gateway-call.ts";
import type { Peer } from "../peer.ts";
import type { TransportParts } from "../transport-parts.ts";

/** Resolves the peer of a call. */
export function peerOfCall(
  inner: ServerInterceptingCallInterface,
  metadata: Metadata,
  { resolvePeer }: TransportParts,
): Peer {
  const header = (name: string): string | undefined => metadata.get(name).map(String).join(", ") || undefined;
  return resolvePeer(inner.getConnectionInfo().remoteAddress, header);
}

/**
 * Counts the bytes held for a call until its stream closes: the received part of the current message, and responses
 * that the client has not read.
 */
export function countMemory(
  inner: ServerInterceptingCallInterface,
  call: GatewayCall,
  { buffers }: TransportParts,
): void {
  const stream = streamOf(inner);
  if (stream.closed) return;
  const decoder: unknown = Reflect.get(inner, "decoder");
  if (!(decoder instanceof Object && "readMessageSize" in decoder && "readMessageRemaining" in decoder)) {
    throw new Error("expected the private field of unfinished messages in grpc-js");
  }
  const buffer = buffers.open(call, {
    measure: {
      message: () => Number(decoder.readMessageSize) - Number(decoder.readMessageRemaining),
      answer: () => stream.writableLength,
    },
    // grpc-js reports this code as `resource_exhausted`.
    close: () => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM),
  });
  stream.once("close", () => buffers.release(buffer));
}

/**
 * Limits the message size of a call, compressed and decompressed, because grpc-js has only one limit for all methods.
 * Sets private fields of grpc-js, and throws if they do not exist.
 */
export function boundMessages(inner: ServerInterceptingCallInterface, bytes: number): void {
  const decoder: unknown = Reflect.get(inner, "decoder");
  if (!(decoder instanceof Object && "maxReadMessageLength" in decoder && "maxReceiveMessageSize" in inner)) {
    throw new Error("expected the private fields of message limits in grpc-js");
  }
  decoder.maxReadMessageLength = bytes;
  inner.maxReceiveMessageSize = bytes;
}

/** Returns the HTTP/2 stream of a call from a private field of grpc-js. Throws if the field does not exist. */
export function streamOf(inner: ServerInterceptingCallInterface): ServerHttp2Stream {
  const stream: unknown = Reflect.get(inner, "stream");
  if (!isHttp2Stream(stream)) throw new Error("expected the private field of the stream in grpc-js");
  return stream;
}

function isHttp2Stream(value: unknown): value is ServerHttp2Stream {
  return value instanceof Duplex && "session" in value && "close" in value;
}
