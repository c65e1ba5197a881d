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

/** A call as seen by a handler. */
export interface GrpcCall {
  readonly metadata: Metadata;
  /** Trailer of a unary response or failure. */
  readonly trailer: Metadata;
  /** Aborts when the caller disconnects or its deadline passes. */
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
 * Handlers for all methods of an internal service. The end of a request stream does not prove that the caller sent
 * everything. Node.js also ends the stream of a cancelled call, some milliseconds before resetting the stream.
 */
export type GrpcHandlers<Methods extends GenServiceMethods> = { readonly [K in keyof Methods]: Handler<Methods[K]> };

/** Methods of a service, for the type of its handlers. */
export type MethodsOf<Service> = Service extends GenService<infer Methods> ? Methods : never;

export interface GrpcServiceOptions {
  /** Runs before each handler. Throws to reject the call. */
  admit(call: GrpcCall, method: DescMethod): void;
  /** Converts thrown values to the status of the call. */
  readonly toStatus: ToStatus;
}

/** Converts a thrown value to the status of the call. */
export type ToStatus = (thrown: unknown, call: GrpcCall) => Partial<StatusObject>;

/** Implementation of a method. */
type Run<Input, Answer> = (call: GrpcCall, input: Input) => Answer;
type Messages = AsyncIterable<Message>;

/** Limits per connection: concurrent calls, idle time, and detection of a silent peer. */
const linkLimits = {
  "grpc.max_concurrent_streams": 4_096,
  "grpc.max_connection_idle_ms": 300_000,
  "grpc.keepalive_time_ms": 60_000,
  "grpc.keepalive_timeout_ms": 20_000,
};

/** Creates a grpc-js server with `linkLimits`, which differ from the defaults of grpc-js. */
export function createFleetGrpcServer(): Server {
  return createGrpcServer(linkLimits);
}

/** Private method of a grpc-js server that rejects streams which are not gRPC calls. */
interface StreamCheck {
  _verifyContentType(stream: Http2Stream, headers: IncomingHttpHeaders): boolean;
}

/**
 * Creates a grpc-js server that ignores streams already closed by the client. For another content type or unknown
 * method, grpc-js 1.14.7 responds without checking the stream's state, and Node.js throws.
 */
export function createGrpcServer(options: ServerOptions): Server {
  const server = new Server(options);
  // Accesses a private method of grpc-js.
  const check = server as unknown as StreamCheck;
  const verify = check._verifyContentType.bind(server);
  check._verifyContentType = (stream, headers) => !stream.destroyed && !stream.closed && verify(stream, headers);
  return server;
}

/** Listens on `host:port` or `unix:/path`. Resolves with the port. */
export function listenGrpc(
  server: Server,
  address: string,
  credentials = ServerCredentials.createInsecure(),
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.bindAsync(address, credentials, (error, port) => (error ? reject(error) : resolve(port)));
  return promise;
}

/** Stops the server. Running calls are cancelled after `timeoutMs`. */
export function stopGrpcServer(server: Server, timeoutMs: number): Promise<void> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  server.tryShutdown(() => resolve());
  return unlessLate(ended, timeoutMs, () => server.forceShutdown());
}

/** Adds an internal service to a grpc-js server. */
export function addGrpcService<Methods extends GenServiceMethods>(
  server: Server,
  service: GenService<Methods>,
  handlers: GrpcHandlers<Methods>,
  { admit, toStatus }: GrpcServiceOptions,
): void {
  // Erases the per-method types, as the public registry does.
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

/** Converts implementations of each kind to grpc-js handlers. */
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
    // The error of a cancelled call is dropped.
    if (call.cancelled) {
      answer({ code: status.CANCELLED, details: "the caller has disconnected" });
      return;
    }
    const failed = toStatus(thrown, seen);
    if (failed.metadata) seen.trailer.merge(failed.metadata);
    answer({ ...failed, metadata: seen.trailer });
  }
}

async function answerAll(call: ManyAnswers, run: (seen: GrpcCall) => Messages, toStatus: ToStatus): Promise<void> {
  const seen = new SeenCall(call);
  // Ignores transport errors here. The following cancellation ends the call.
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

/** Yields the caller's messages until the caller ends or cancels the call. */
async function* requestsOf(call: ServerDuplexStream<Message, Message>): AsyncGenerator<Message> {
  try {
    // Keeps the stream open, because a handler that stops reading may still write.
    yield* call.iterator({ destroyOnReturn: false });
  } catch (thrown) {
    if (!call.cancelled) throw thrown;
  }
}

/** Properties common to all grpc-js calls. */
interface ServedCall extends EventEmitter {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
}

/** A call as seen by handlers. Creates the signal on first use, because creating a signal takes 3 us. */
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
