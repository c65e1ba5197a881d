import { once } from "node:events";
import type { DescMessage, DescMethod, Message, MessageShape } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import {
  Metadata,
  Server,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  status,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { unlessLate } from "../deadline.ts";
import { toServiceDefinition } from "./grpc-codec.ts";

/** What a handler sees of a call besides its message. */
export interface GrpcCall {
  readonly metadata: Metadata;
  /** What the answer of a unary method carries besides its message, or its failure does. */
  readonly trailer: Metadata;
  /** Aborts when the caller has gone away or its deadline has passed. */
  readonly signal: AbortSignal;
}

type In<M extends { input: DescMessage }> = MessageShape<M["input"]>;
type Out<M extends { output: DescMessage }> = MessageShape<M["output"]>;

type Handler<M extends GenServiceMethods[string]> = M["methodKind"] extends "unary"
  ? (call: GrpcCall, request: In<M>) => Promise<Out<M>>
  : M["methodKind"] extends "server_streaming"
    ? (call: GrpcCall, request: In<M>) => AsyncIterable<Out<M>>
    : M["methodKind"] extends "client_streaming"
      ? (call: GrpcCall, requests: AsyncIterable<In<M>>) => Promise<Out<M>>
      : (call: GrpcCall, requests: AsyncIterable<In<M>>) => AsyncIterable<Out<M>>;

/**
 * A handler for every method of an internal service. Requests that end are no proof that the caller has sent all: Node
 * ends the stream of a call that is cancelled, too, and resets it some milliseconds later.
 */
export type GrpcHandlers<Methods extends GenServiceMethods> = { readonly [K in keyof Methods]: Handler<Methods[K]> };

/** The methods of a service, for the type of its handlers. */
export type MethodsOf<Service> = Service extends GenService<infer Methods> ? Methods : never;

/** How an internal service is served. */
export interface GrpcServiceOptions {
  /** Runs before each handler; throws to refuse the call. */
  admit(call: GrpcCall, method: DescMethod): void;
  /** Turns whatever a handler throws into the status that ends the call. */
  toStatus(thrown: unknown): Partial<StatusObject>;
}

/** Where the handlers' message types are given up: descriptor and handler are known to agree here, and only here. */
interface UntypedHandlers {
  readonly [name: string]: (call: GrpcCall, input: unknown) => Promise<Message> & AsyncIterable<Message>;
}

/** Calls that one connection may have open, and how long it may be open without any, or its other end silent. */
const linkLimits = {
  "grpc.max_concurrent_streams": 4_096,
  "grpc.max_connection_idle_ms": 300_000,
  "grpc.keepalive_time_ms": 60_000,
  "grpc.keepalive_timeout_ms": 20_000,
};

/** Makes a grpc-js server of the fleet link: without bounds of ours, its connections and calls have none. */
export function createLinkServer(): Server {
  return new Server(linkLimits);
}

/** Adds an internal service to a grpc-js server. */
export function addGrpcService<Methods extends GenServiceMethods>(
  server: Server,
  service: GenService<Methods>,
  handlers: GrpcHandlers<Methods>,
  options: GrpcServiceOptions,
): void {
  // The boundary where per-method types become one, as in the public registry.
  const untyped = handlers as unknown as UntypedHandlers;
  const implementation: Record<string, UntypedHandleCall> = {};
  for (const method of service.methods) {
    const handle = untyped[method.localName];
    if (!handle) throw new Error(`${service.typeName}.${method.name} has no handler`);
    const admitted: UntypedHandlers[string] = (call, input) => {
      options.admit(call, method);
      return handle(call, input);
    };
    implementation[method.localName] = toGrpcHandler(method, admitted, options);
  }
  server.addService(toServiceDefinition(service), implementation);
}

/** Lets running calls end, for so many milliseconds, and takes no more. */
export function stopGrpcServer(server: Server, patience: number): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  server.tryShutdown(() => resolve());
  return unlessLate(ended, patience, () => server.forceShutdown());
}

function toGrpcHandler(
  { methodKind }: DescMethod,
  handle: UntypedHandlers[string],
  options: GrpcServiceOptions,
): UntypedHandleCall {
  switch (methodKind) {
    case "unary":
      return (call: ServerUnaryCall<Message, Message>, answer: sendUnaryData<Message>) =>
        runUnary(call, call.request, handle, options, answer);
    case "client_streaming":
      return (call: ServerReadableStream<Message, Message>, answer: sendUnaryData<Message>) =>
        runUnary(call, call, handle, options, answer);
    case "server_streaming":
      return (call: ServerWritableStream<Message, Message>) => runStreaming(call, call.request, handle, options);
    case "bidi_streaming":
      return (call: ServerDuplexStream<Message, Message>) =>
        // A handler that has read enough must not destroy the stream that it still answers on.
        runStreaming(call, call.iterator({ destroyOnReturn: false }), handle, options);
  }
}

async function runUnary(
  call: ServerUnaryCall<Message, Message> | ServerReadableStream<Message, Message>,
  input: unknown,
  handle: UntypedHandlers[string],
  options: GrpcServiceOptions,
  answer: sendUnaryData<Message>,
): Promise<void> {
  const signal = signalOf(call);
  const trailer = new Metadata();
  try {
    answer(null, await handle({ metadata: call.metadata, trailer, signal }, input), trailer);
  } catch (thrown) {
    // Whatever a handler throws because its caller has gone, nobody hears.
    if (signal.aborted) {
      answer({ code: status.CANCELLED, details: "the caller has gone" });
      return;
    }
    const failed = options.toStatus(thrown);
    if (failed.metadata) trailer.merge(failed.metadata);
    answer({ ...failed, metadata: trailer });
  }
}

async function runStreaming(
  stream: ServerWritableStream<Message, Message> | ServerDuplexStream<Message, Message>,
  input: unknown,
  handle: UntypedHandlers[string],
  options: GrpcServiceOptions,
): Promise<void> {
  const signal = signalOf(stream);
  try {
    for await (const message of handle({ metadata: stream.metadata, trailer: new Metadata(), signal }, input)) {
      if (signal.aborted) return;
      if (!stream.write(message)) await once(stream, "drain", { signal });
    }
    stream.end();
  } catch (thrown) {
    if (!signal.aborted) stream.emit("error", options.toStatus(thrown));
  }
}

function signalOf(call: { cancelled: boolean; once(event: "cancelled", listener: () => void): unknown }): AbortSignal {
  const gone = new AbortController();
  call.once("cancelled", () => gone.abort());
  if (call.cancelled) gone.abort();
  return gone.signal;
}
