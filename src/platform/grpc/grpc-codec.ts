import { once } from "node:events";
import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Client,
  type ClientWritableStream,
  Metadata,
  type MethodDefinition,
  type ServiceDefinition,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { raceSignal } from "../deadline.ts";
import { inSpan } from "../traces/spans.ts";
import { fleetMetadata } from "./fleet-metadata.ts";

/** A method of one kind, with its message types. */
export interface TypedMethod<Kind, Input extends DescMessage, Output extends DescMessage> {
  readonly methodKind: Kind;
  readonly input: Input;
  readonly output: Output;
}

export interface GrpcCallOptions {
  readonly metadata?: Metadata;
  /** Milliseconds until the call fails with DEADLINE_EXCEEDED. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with the trailer of a unary call, also on failure. */
  readonly onTrailer?: (trailer: Metadata) => void;
}

/** Converts a service descriptor to a grpc-js definition. */
export function toServiceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, toMethodDefinition(method)]));
}

/** Converts a method descriptor to a grpc-js definition. */
function toMethodDefinition(method: DescMethod): MethodDefinition<Message, Message> {
  const { input, output, methodKind } = method;
  return {
    path: pathOf(method),
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
    requestSerialize: serializer(input),
    requestDeserialize: deserializer(input),
    responseSerialize: serializer(output),
    responseDeserialize: deserializer(output),
    originalName: method.localName,
  };
}

/** Makes a unary call, which continues the active trace. Rejects with the ServiceError of grpc-js. */
export function callUnary<Input extends DescMessage, Output extends DescMessage>(
  client: Client,
  method: TypedMethod<"unary", Input, Output> & DescMethod,
  request: MessageShape<Input>,
  options: GrpcCallOptions = {},
): Promise<MessageShape<Output>> {
  const name = `${method.parent.name}.${method.name}`;
  return inSpan(name, { kind: "client", attributes: { "rpc.method": name } }, (span) => {
    if (!span) return sendUnary(client, method, request, options);
    // Cloned, because all calls to a worker share the metadata.
    const metadata = options.metadata?.clone() ?? new Metadata();
    metadata.set(fleetMetadata.traceparent, span.traceparent);
    return sendUnary(client, method, request, { ...options, metadata });
  });
}

function sendUnary<Input extends DescMessage, Output extends DescMessage>(
  client: Client,
  method: TypedMethod<"unary", Input, Output> & DescMethod,
  request: MessageShape<Input>,
  options: GrpcCallOptions,
): Promise<MessageShape<Output>> {
  if (options.signal?.aborted) return Promise.reject(notSent(method));
  const { promise, resolve, reject } = Promise.withResolvers<MessageShape<Output>>();
  const call = client.makeUnaryRequest(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    request,
    options.metadata ?? new Metadata(),
    toCallOptions(options),
    (error, answer) => {
      if (error) reject(error);
      else if (answer === undefined) reject(new Error(`expected a response of ${method.name}, got none`));
      else resolve(answer);
    },
  );
  // The status event precedes the settled promise, so callers receive the trailer first.
  call.on("status", ({ metadata }) => options.onTrailer?.(metadata));
  const release = cancelOnAbort(options.signal, () => call.cancel());
  return promise.finally(release);
}

/** Makes a server-streaming call. Leaving the loop over the responses cancels the call. */
export async function* callServerStreaming<Input extends DescMessage, Output extends DescMessage>(
  client: Client,
  method: TypedMethod<"server_streaming", Input, Output> & DescMethod,
  request: MessageShape<Input>,
  options: GrpcCallOptions = {},
): AsyncGenerator<MessageShape<Output>, void, undefined> {
  if (options.signal?.aborted) throw notSent(method);
  const stream = client.makeServerStreamRequest(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    request,
    options.metadata ?? new Metadata(),
    toCallOptions(options),
  );
  const release = cancelOnAbort(options.signal, () => stream.cancel());
  try {
    for await (const message of stream) yield message;
  } finally {
    release();
    // Ignores the cancellation error after leaving early.
    stream.on("error", () => undefined);
    stream.cancel();
  }
}

/** Makes a client-streaming call with backpressure. */
export async function callClientStreaming<Input extends DescMessage, Output extends DescMessage>(
  client: Client,
  method: TypedMethod<"client_streaming", Input, Output> & DescMethod,
  requests: AsyncIterable<MessageShape<Input>>,
  options: GrpcCallOptions = {},
): Promise<MessageShape<Output>> {
  if (options.signal?.aborted) throw notSent(method);
  const { promise, resolve, reject } = Promise.withResolvers<MessageShape<Output>>();
  const over = new AbortController();
  const call = client.makeClientStreamRequest(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    options.metadata ?? new Metadata(),
    toCallOptions(options),
    (error, answer) => {
      over.abort();
      if (error) reject(error);
      else if (answer === undefined) reject(new Error(`expected a response of ${method.name}, got none`));
      else resolve(answer);
    },
  );
  const release = cancelOnAbort(options.signal, () => call.cancel());
  const sending = sendAll(call, requests, over.signal).catch((error: unknown) => {
    // If the call is over, its response carries the error. Otherwise the requests failed.
    if (over.signal.aborted) return;
    reject(error);
    // Must not run in the tick that starts the call: see cancelOnAbort.
    setImmediate(() => call.cancel());
  });
  return promise.finally(() => sending).finally(release);
}

/**
 * Makes a bidirectional call with backpressure in both directions. Leaving the loop over the responses cancels the
 * call. If the requests fail, cancels the call and throws their error from the loop.
 */
export async function* callBidiStreaming<Input extends DescMessage, Output extends DescMessage>(
  client: Client,
  method: TypedMethod<"bidi_streaming", Input, Output> & DescMethod,
  requests: AsyncIterable<MessageShape<Input>>,
  options: GrpcCallOptions = {},
): AsyncGenerator<MessageShape<Output>, void, undefined> {
  if (options.signal?.aborted) throw notSent(method);
  const stream = client.makeBidiStreamRequest(
    pathOf(method),
    serializer(method.input),
    deserializer(method.output),
    options.metadata ?? new Metadata(),
    toCallOptions(options),
  );
  const over = new AbortController();
  const release = cancelOnAbort(options.signal, () => stream.cancel());
  let broken: { readonly error: unknown } | undefined;
  sendAll(stream, requests, over.signal).catch((error: unknown) => {
    if (over.signal.aborted) return;
    broken = { error };
    // Must not run in the tick that starts the call: see cancelOnAbort.
    setImmediate(() => stream.cancel());
  });
  try {
    for await (const message of stream) yield message;
  } catch (error) {
    throw broken ? broken.error : error;
  } finally {
    over.abort();
    release();
    // Ignores the cancellation error after leaving early.
    stream.on("error", () => undefined);
    stream.cancel();
  }
}

/** Sends requests until they end or the call is over. Closes the iterator without waiting, because closing may hang. */
async function sendAll<Message>(
  call: ClientWritableStream<Message>,
  requests: AsyncIterable<Message>,
  over: AbortSignal,
): Promise<void> {
  const iterator = requests[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await raceSignal(iterator.next(), over);
      if (done) break;
      if (!call.write(value)) await once(call, "drain", { signal: over });
    }
    call.end();
  } catch (error) {
    iterator.return?.().catch(() => undefined);
    throw error;
  }
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function serializer<Desc extends DescMessage>(desc: Desc): (message: MessageShape<Desc>) => Buffer {
  return (message) => {
    const bytes = toBinary(desc, message);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function deserializer<Desc extends DescMessage>(desc: Desc): (bytes: Buffer) => MessageShape<Desc> {
  return (bytes) => fromBinary(desc, bytes);
}

function toCallOptions({ timeoutMs }: GrpcCallOptions): CallOptions {
  return timeoutMs === undefined ? {} : { deadline: deadlineAfter(timeoutMs) };
}

const deadlineAfter = (timeoutMs: number): number => Date.now() + timeoutMs;

/** Connects a client. Rejects after `timeoutMs`, or if the client is closed. */
export function untilConnected(client: Client, timeoutMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  client.waitForReady(deadlineAfter(timeoutMs), (error) => (error ? reject(error) : resolve()));
  return promise;
}

/**
 * Cancels a call in the event loop iteration after the signal's abort. In the tick that starts a call, grpc-js 1.14
 * cancels only locally: the request is still sent, and the server works until the deadline (in 300 of 300 trials).
 */
function cancelOnAbort(signal: AbortSignal | undefined, cancel: () => void): () => void {
  if (!signal) return () => undefined;
  const onAbort = () => void setImmediate(cancel);
  signal.addEventListener("abort", onAbort, { once: true });
  return () => signal.removeEventListener("abort", onAbort);
}

/** Creates the error of a call that was cancelled before it was sent. */
function notSent({ name }: DescMethod): ServiceError {
  const details = `${name} was cancelled before it was sent`;
  return Object.assign(new Error(details), { code: status.CANCELLED, details, metadata: new Metadata() });
}
