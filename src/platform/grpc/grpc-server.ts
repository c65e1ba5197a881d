import { type EventEmitter, once } from "node:events";
import type { Http2Stream, IncomingHttpHeaders } from "node:http2";
import type { DescMessage, DescMethod, Message, MessageShape } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import {
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerOptions,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type StatusObject,
  type sendUnaryData,
  status,
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
  readonly toStatus: ToStatus;
}

/** Turns whatever the run of a call throws into the status that ends the call. */
export type ToStatus = (thrown: unknown, call: GrpcCall) => Partial<StatusObject>;

/** What runs a method. */
type Run<Input, Answer> = (call: GrpcCall, input: Input) => Answer;
type Messages = AsyncIterable<Message>;

/** Calls that one connection may have open, and how long it may be open without any, or its other end silent. */
const linkLimits = {
  "grpc.max_concurrent_streams": 4_096,
  "grpc.max_connection_idle_ms": 300_000,
  "grpc.keepalive_time_ms": 60_000,
  "grpc.keepalive_timeout_ms": 20_000,
};

/** Makes a grpc-js server of the fleet link: without bounds of ours, its connections and calls have none. */
export function createLinkServer(): Server {
  return createGrpcServer(linkLimits);
}

/** The part of a grpc-js server that says whether a new stream is a call, and answers the stream itself if not. */
interface StreamCheck {
  _verifyContentType(stream: Http2Stream, headers: IncomingHttpHeaders): boolean;
}

/**
 * Creates a grpc-js server that ignores streams which their client has ended already. grpc-js 1.14.7 responds to a
 * stream of another content type or an unknown method without a look at its state, and Node throws then.
 */
export function createGrpcServer(options: ServerOptions): Server {
  const server = new Server(options);
  // The boundary to a method that grpc-js has declared private.
  const check = server as unknown as StreamCheck;
  const verify = check._verifyContentType.bind(server);
  check._verifyContentType = (stream, headers) => !stream.destroyed && !stream.closed && verify(stream, headers);
  return server;
}

/** Listens on `host:port` or `unix:/path`, and gives the port. */
export function listenGrpc(
  server: Server,
  address: string,
  credentials = ServerCredentials.createInsecure(),
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.bindAsync(address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  return promise;
}

/** Lets running calls end, for so many milliseconds, and takes no more. */
export function stopGrpcServer(server: Server, patience: number): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  server.tryShutdown(() => resolve());
  return unlessLate(ended, patience, () => server.forceShutdown());
}

/** Adds an internal service to a grpc-js server. */
export function addGrpcService<Methods extends GenServiceMethods>(
  server: Server,
  service: GenService<Methods>,
  handlers: GrpcHandlers<Methods>,
  { admit, toStatus }: GrpcServiceOptions,
): void {
  // The boundary where per-method types become one, as in the public registry.
  const runs = handlers as unknown as Readonly<Record<string, Run<unknown, Promise<Message> & Messages>>>;
  const adapted = service.methods.map((method) => {
    const run = runs[method.localName];
    if (!run) throw new Error(`${service.typeName}.${method.name} has no handler`);
    const admitted: typeof run = (call, input) => {
      admit(call, method);
      return run(call, input);
    };
    return [method.localName, grpcHandler[method.methodKind](admitted, toStatus)];
  });
  server.addService(toServiceDefinition(service), Object.fromEntries(adapted));
}

/** Makes of what runs a method of some kind what grpc-js calls. */
export const grpcHandler = {
  unary:
    (run: Run<Message, Promise<Message>>, toStatus: ToStatus): handleUnaryCall<Message, Message> =>
    (call, answer) =>
      void answerOnce(call, answer, (seen) => run(seen, call.request), toStatus),
  client_streaming:
    (run: Run<Messages, Promise<Message>>, toStatus: ToStatus): handleClientStreamingCall<Message, Message> =>
    (call, answer) =>
      void answerOnce(call, answer, (seen) => run(seen, call), toStatus),
  server_streaming:
    (run: Run<Message, Messages>, toStatus: ToStatus): handleServerStreamingCall<Message, Message> =>
    (call) =>
      void answerAll(call, (seen) => run(seen, call.request), toStatus),
  bidi_streaming:
    (run: Run<Messages, Messages>, toStatus: ToStatus): handleBidiStreamingCall<Message, Message> =>
    (call) =>
      void answerAll(call, (seen) => run(seen, requestsOf(call)), toStatus),
};

type OneAnswer = ServerUnaryCall<Message, Message> | ServerReadableStream<Message, Message>;
type ManyAnswers = ServerWritableStream<Message, Message> | ServerDuplexStream<Message, Message>;

async function answerOnce(
  call: OneAnswer,
  answer: sendUnaryData<Message>,
  run: (seen: GrpcCall) => Promise<Message>,
  toStatus: ToStatus,
): Promise<void> {
  const seen = new SeenCall(call);
  try {
    answer(null, await run(seen), seen.trailer);
  } catch (thrown) {
    // Whatever is thrown because its caller has gone, nobody hears.
    if (call.cancelled) {
      answer({ code: status.CANCELLED, details: "the caller has gone" });
      return;
    }
    const failed = toStatus(thrown, seen);
    if (failed.metadata) seen.trailer.merge(failed.metadata);
    answer({ ...failed, metadata: seen.trailer });
  }
}

async function answerAll(call: ManyAnswers, run: (seen: GrpcCall) => Messages, toStatus: ToStatus): Promise<void> {
  const seen = new SeenCall(call);
  // grpc-js says errors of the transport here; the cancellation that comes with them is what ends the call.
  call.on("error", () => undefined);
  try {
    for await (const message of run(seen)) {
      if (call.cancelled) return;
      if (!call.write(message)) await once(call, "drain", { signal: seen.signal });
    }
    call.end();
  } catch (thrown) {
    if (!call.cancelled) call.emit("error", toStatus(thrown, seen));
  }
}

/** The messages of a caller until it ends its side, or goes away: that ends the call by its own way. */
async function* requestsOf(call: ServerDuplexStream<Message, Message>): AsyncGenerator<Message> {
  try {
    // A handler that has read enough must not destroy the stream that it still answers on.
    yield* call.iterator({ destroyOnReturn: false });
  } catch (thrown) {
    if (!call.cancelled) throw thrown;
  }
}

/** What grpc-js has of a call of any kind. */
interface ServedCall extends EventEmitter {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
}

/** A call as handlers see it. Its signal is made when it is first asked for: that takes 3 us. */
class SeenCall implements GrpcCall {
  readonly metadata: Metadata;
  readonly trailer = new Metadata();
  readonly #call: ServedCall;
  #gone: AbortController | undefined;

  constructor(call: ServedCall) {
    this.#call = call;
    this.metadata = call.metadata;
  }

  get signal(): AbortSignal {
    if (!this.#gone) {
      const gone = new AbortController();
      this.#gone = gone;
      this.#call.once("cancelled", () => gone.abort());
      if (this.#call.cancelled) gone.abort();
    }
    return this.#gone.signal;
  }
}
