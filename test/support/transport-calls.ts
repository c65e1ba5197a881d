import {
  type DescMethod,
  type DescMethodStreaming,
  type DescMethodUnary,
  fromJson,
  getOption,
  type JsonValue,
  type Message,
  type MessageShape,
  toJson,
} from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { rules } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { httpRouteOf } from "../../src/kernel/http-route.ts";
import { errorTable, extensionsOf, isErrorSlug } from "../../src/platform/error-table.ts";
import { watchForParsers } from "./leaks.ts";

/** Transports of a gateway. Bidirectional methods use WebSocket for REST, and Connect over HTTP/1.1 lacks them. */
export const transportNames = ["REST", "Connect", "gRPC", "gRPC on GRPC_PORT"] as const;
export type TransportName = (typeof transportNames)[number];

/** Result of a call in a form common to all transports. */
export interface Outcome {
  /** Empty if the call succeeded. */
  readonly slug: string;
  readonly extensions: Readonly<Record<string, unknown>>;
  /** Seconds after which to retry, if the response sets them. */
  readonly retryAfter?: number | undefined;
  /** The response, or a stream's first message, in Connect's JSON, or the problem; text if the body is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly answer: any;
  readonly headers: Headers;
}

type Sent = Readonly<Record<string, string>>;

/** Calls a method of any kind and cancels it after the first response. */
export type TransportCall = (
  transportName: TransportName,
  method: DescMethod,
  request: JsonValue,
  headers: Sent,
) => Promise<Outcome>;

/** Creates a function that calls a gateway through each of its transports. */
export function createTransportCall({
  url,
  grpcAddress,
}: {
  readonly url: string;
  readonly grpcAddress: string;
}): TransportCall {
  const transports: Record<Exclude<TransportName, "REST">, Transport> = {
    Connect: createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
    gRPC: createGrpcTransport({ baseUrl: url }),
    "gRPC on GRPC_PORT": createGrpcTransport({ baseUrl: `http://${grpcAddress}` }),
  };
  return (transportName, method, request, headers) => {
    if (transportName !== "REST") return callRpc(transports[transportName], method, request, headers);
    return method.methodKind === "bidi_streaming"
      ? callWebSocket(url, method, request, headers)
      : callRest(url, method, request, headers);
  };
}

/** Fills the fields that a path names into the path. Returns the remaining fields. */
function fillPath(template: string, request: JsonValue): { path: string; fields: Record<string, unknown> } {
  const fields = new Map(Object.entries(Object(request)));
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name) => {
    const value = String(fields.get(name));
    fields.delete(name);
    return encodeURIComponent(value);
  });
  return { path, fields: Object.fromEntries(fields) };
}

async function callRest(url: string, method: DescMethod, request: JsonValue, headers: Sent): Promise<Outcome> {
  const route = httpRouteOf(method);
  if (!route) throw new Error(`${method} has no REST route`);
  const { path, fields } = fillPath(route.template, request);
  const over = new AbortController();
  const response = await fetch(`${url}${path}`, {
    method: route.verb,
    headers,
    signal: over.signal,
    ...(route.hasBody && bodyOf(method, fields, headers)),
    ...(route.rawBody && rawBodyOf(fields[route.rawBody.name])),
  });
  const { headers: received } = response;
  if (received.get("content-type")?.startsWith("text/event-stream")) {
    over.abort();
    return { slug: "", extensions: {}, answer: "", headers: received };
  }
  const text = await response.text();
  if (!response.ok) watchForParsers(text);
  const isJson = /[/+]json/.test(received.get("content-type") ?? "");
  const answer = isJson ? JSON.parse(text) : text === "" ? {} : text;
  return response.ok
    ? { slug: "", extensions: {}, answer, headers: received }
    : refusal(answer, response.status, received);
}

/** Returns the bytes of a google.api.HttpBody in JSON as the body of a request. */
function rawBodyOf(body: unknown): RequestInit {
  return body === undefined ? {} : { body: Buffer.from(Object(body).data, "base64") };
}

function bodyOf(method: DescMethod, fields: Record<string, unknown>, headers: Sent): RequestInit {
  if (getOption(method, rules).formBody) return { body: new URLSearchParams(Object(fields)) };
  return { body: JSON.stringify(fields), headers: { ...headers, "content-type": "application/json" } };
}

/** Converts a problem document. */
function refusal(problem: { readonly type: string }, status: number, headers: Headers): Outcome {
  const slug = problem.type.split("/").at(-1) ?? "";
  expect(isErrorSlug(slug) && errorTable[slug].status).toBe(status);
  const told = headers.get("retry-after");
  const retryAfter = told === null ? undefined : Number(told);
  return { slug, extensions: knownExtensions(slug, { ...problem }), retryAfter, answer: problem, headers };
}

/** Opens a WebSocket, sends one message and takes the first response. A refused handshake is an HTTP response. */
function callWebSocket(url: string, method: DescMethod, request: JsonValue, headers: Sent): Promise<Outcome> {
  const { path, fields } = fillPath(getOption(method, rules).websocket, request);
  const socket = new WebSocket(`${url.replace("http", "ws")}${path}`, { headers });
  return new Promise<Outcome>((resolve, reject) => {
    const none = new Headers();
    socket.on("open", () => socket.send(JSON.stringify(fields)));
    socket.on("message", (data) => {
      const answer = JSON.parse(data.toString());
      const { error } = answer;
      resolve(error ? refusal(error, error.status, none) : { slug: "", extensions: {}, answer, headers: none });
    });
    socket.on("close", () => resolve({ slug: "", extensions: {}, answer: undefined, headers: none }));
    socket.on("error", reject);
    socket.on("unexpected-response", (_, response) => {
      response.toArray().then((chunks) => {
        const entries = Object.entries(response.headers).map(([name, value]): [string, string] => [
          name,
          String(value),
        ]);
        resolve(refusal(JSON.parse(Buffer.concat(chunks).toString()), response.statusCode ?? 0, new Headers(entries)));
      }, reject);
    });
  }).finally(() => socket.terminate());
}

async function callRpc(transport: Transport, method: DescMethod, request: JsonValue, headers: Sent): Promise<Outcome> {
  try {
    const { message, header } = await firstAnswer(transport, method, request, headers);
    const answer = message && toJson(method.output, message, { useProtoFieldName: true });
    return { slug: "", extensions: {}, answer, headers: header };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [info] = error.findDetails(ErrorInfoSchema);
    if (!info) throw thrown;
    expect(info.domain).toBe("pilothouse");
    watchForParsers(error.rawMessage);
    const slug = info.reason;
    expect(isErrorSlug(slug) && errorTable[slug].code).toBe(error.code);
    const [retry] = error.findDetails(RetryInfoSchema);
    const retryAfter = retry && Number(retry.retryDelay?.seconds);
    const extensions = knownExtensions(slug, info.metadata);
    return { slug, extensions, retryAfter, answer: error, headers: error.metadata };
  }
}

/** Milliseconds to wait for a response. */
const timeout = 30_000;

const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";

async function firstAnswer(
  transport: Transport,
  method: DescMethod,
  request: JsonValue,
  headers: Sent,
): Promise<{ message: Message | undefined; header: Headers }> {
  const input: MessageShape<typeof method.input> = fromJson(method.input, request);
  if (isUnary(method)) return transport.unary(method, undefined, timeout, headers, input);
  const over = new AbortController();
  const stream = await transport.stream(
    method as DescMethodStreaming,
    over.signal,
    timeout,
    headers,
    (async function* () {
      yield input;
    })(),
  );
  try {
    for await (const message of stream.message) return { message, header: stream.header };
    return { message: undefined, header: stream.header };
  } finally {
    over.abort();
  }
}

/** Extensions of a problem as text, because gRPC metadata is text only. */
function knownExtensions(slug: string, members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (!isErrorSlug(slug)) return {};
  const names = Object.keys(extensionsOf(slug)).filter((name) => members[name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, String(members[name])]));
}
