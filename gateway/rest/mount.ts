import type { ServerResponse } from "node:http";
import { constants, Http2ServerResponse } from "node:http2";
import { Readable } from "node:stream";
import type { Message } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answersRaw, type HttpRoute } from "../../src/kernel/http-route.ts";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { Failure, fail, failFaults, failFields } from "../../src/platform/errors.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import type { CallDispatcher } from "../call-dispatcher.ts";
import { GatewayCall } from "../gateway-call.ts";
import { longestBody } from "../message-size.ts";
import { withBearerInPath } from "../peer.ts";
import { answerHeaders, peerOf, type TransportParts } from "../transport-parts.ts";
import { compileStreamedBody } from "./capture-body.ts";
import { openEventStream } from "./event-stream.ts";
import { asFormFailure, formParser } from "./form-body.ts";
import { compileEncoder } from "./json-answer.ts";
import { asHttpBody, compileRawHeaders, streamBytes } from "./raw-answer.ts";
import { checkLength, describeBody, rawBody } from "./raw-body.ts";
import { compileRequestReader } from "./request-reader.ts";
import { SharedStream } from "./shared-stream.ts";
import { compileStreamedFields, hasStreamedFields } from "./streamed-fields.ts";
import { type PathTemplate, parseTemplate, tokenVariable } from "./template.ts";
import { timeoutOf } from "./timeout.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Call of the request. Undefined if the request belongs to no method. */
    call?: GatewayCall;
  }

  interface FastifyContextConfig {
    /** Whether the route belongs to a method, whose policies admit its requests. */
    isMethod?: boolean;
  }
}

/** A route of the REST server. */
export interface RestRoute {
  readonly verb: HttpRoute["verb"];
  readonly hasHead: boolean;
  readonly template: PathTemplate;
}

/** Runs a method and sends its response. */
type Respond = (call: GatewayCall, request: () => Message, reply: FastifyReply) => Promise<FastifyReply>;

/** Mounts every method with a google.api.http rule, and returns the routes. */
export function mountRest(
  fastify: FastifyInstance,
  services: readonly ServedService[],
  transport: TransportParts,
): RestRoute[] {
  return services.flatMap(({ methods }) =>
    methods.flatMap((served) => {
      const { route } = served;
      if (!route) return [];
      const answer = answerOf(served, methods, transport);
      const templates = [route.template, ...route.aliases].map(parseTemplate);
      for (const template of templates) mountOne(fastify, served, route, template, transport, answer);
      const { verb, hasHead } = route;
      return templates.map((template) => ({ verb, hasHead, template }));
    }),
  );
}

function mountOne(...[fastify, served, route, template, transport, answer]: Parameters<typeof mountRoute>): void {
  if (route.rawBody) {
    // A separate scope, so that no parser of Fastify reads the body.
    void fastify.register(async (scope) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser("*", (_request, _body, done) => done(null));
      mountRoute(scope, served, route, template, transport, answer);
    });
  } else {
    mountRoute(fastify, served, route, template, transport, answer);
  }
}

function mountRoute(
  fastify: FastifyInstance,
  served: ServedMethod,
  route: HttpRoute,
  template: PathTemplate,
  transport: TransportParts,
  answer: Respond,
): void {
  const parseBody = served.rules.formBody ? formParser(served.method.input) : undefined;
  const variables = template.variables.filter((name) => name !== tokenVariable);
  const read = compileRequestReader(served.method.input, route, variables, parseBody);
  const ids = new Set(template.variables.filter((name) => name === "id" || name.endsWith("_id")));
  const { resumesAfter } = served;
  const { rawBody: rawField } = route;
  const maxBytes = longestBody(served);
  fastify.route({
    method: route.verb,
    url: template.route,
    bodyLimit: maxBytes,
    config: { isMethod: true },
    exposeHeadRoute: route.hasHead,
    // Runs before the body is read, so that clients without a key cannot make the service parse it.
    onRequest: async (request, reply) => {
      const token = (request.params as Record<string, string>)[tokenVariable] ?? takeToken(served, request);
      const call = new GatewayCall(served, withBearerInPath(peerOf(request.raw, transport), token), timeoutOf(request));
      request.call = call;
      request.raw.call = call;
      followClient(call, reply);
      await transport.dispatcher.admit(call);
      // Raw bodies are not held: they are passed on in chunks.
      if (!isClosed(reply.raw)) transport.buffers.openExchange(call, request.raw, reply.raw, rawField ? 0 : maxBytes);
      if (rawField) {
        checkLength(request.raw, maxBytes);
      } else if (route.hasBody) {
        checkBodyHeaders(request, served.rules.formBody);
      }
    },
    handler: async (request, reply) => {
      const call = callOf(request);
      if (request.body instanceof Buffer) {
        call.buffer?.set("body", request.body.length);
        await transport.dispatcher.awaitAllowance(call, request.body.length);
      }
      // The router matches `/v1/sessions/` with an empty session id.
      if (Object.values(request.params as Record<string, string>).includes("")) {
        throw fail("not-found", {}, { detail: "no endpoint has this path: /docs lists all endpoints" });
      }
      let isRead = false;
      const readMessage = (): Message => {
        const message = read({
          variables: request.params as Record<string, string>,
          query: request.query as Record<string, string | string[]>,
          body: request.body as Buffer | undefined,
        });
        const lastEventId = resumesAfter && call.header("last-event-id");
        if (resumesAfter && lastEventId !== undefined) Reflect.set(message, resumesAfter.localName, lastEventId);
        if (rawField) {
          Reflect.set(message, rawField.localName, describeBody(request.raw));
          call.body = rawBody(request.raw, maxBytes, call.signal);
          transport.bodies.unwatch(request.raw);
        }
        isRead = true;
        return message;
      };
      try {
        return await answer(call, readMessage, reply);
      } catch (thrown) {
        if (served.rules.formBody) throw asFormFailure(thrown);
        if (isRead && isAboutIds(thrown, ids)) throw fail("not-found", {}, { detail: "no resource has this id" });
        throw route.hasBody ? thrown : aboutParameters(thrown);
      }
    },
  });
}

/** Removes the bearer from the query and returns it, if the method accepts a bearer in the query. */
function takeToken({ rules }: ServedMethod, { query }: FastifyRequest): string | undefined {
  if (!rules.keyInAddress) return undefined;
  const parameters = query as Record<string, string | string[]>;
  const { [tokenVariable]: token } = parameters;
  delete parameters[tokenVariable];
  return typeof token === "string" ? token : undefined;
}

/** Returns whether an error is about a malformed id in the path, which is reported as `not-found`. */
function isAboutIds(thrown: unknown, ids: ReadonlySet<string>): boolean {
  return (
    thrown instanceof Failure &&
    thrown.slug === "validation-failed" &&
    thrown.errors.some(({ field }) => ids.has(field))
  );
}

/** Renames faults of repeated parameters: `label[0]` becomes the parameter `label`. */
function aboutParameters(thrown: unknown): unknown {
  if (!(thrown instanceof Failure) || thrown.slug !== "validation-failed") return thrown;
  return failFaults(
    thrown.slug,
    thrown.errors.map(({ field, message }) => ({ field: field.replace(/\[\d+\]$/, ""), message })),
  );
}

/**
 * Throws `bad-request` if the body is encoded, or has a type other than that of the method. Fastify's parsers accept
 * the types of all methods.
 */
function checkBodyHeaders(request: FastifyRequest, formBody: boolean): void {
  const coding = request.headers["content-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "identity") {
    throw failFields("bad-request", { "Content-Encoding": "must be absent: send the body as it is" });
  }
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
  const expected = formBody ? "application/x-www-form-urlencoded" : "application/json";
  if (type !== undefined && type !== expected) {
    const failure = failFields("bad-request", { "Content-Type": `must be ${expected}` });
    throw formBody ? asFormFailure(failure) : failure;
  }
}

function callOf(request: FastifyRequest): GatewayCall {
  if (!request.call) throw new Error("expected a request that passed the policies");
  return request.call;
}

/** Cancels the call if the client disconnects or the deadline passes. */
function followClient(call: GatewayCall, reply: FastifyReply): void {
  const { raw } = reply;
  if (isClosed(raw)) {
    call.cancel();
    return;
  }
  // The response closes with the connection. The request already emits "close" when its body is read.
  raw.once("close", () => {
    clearTimeout(timer);
    if (!raw.writableFinished) call.cancel();
  });
  const timer = Number.isFinite(call.deadline)
    ? setTimeout(() => call.cancel(), call.deadline - performance.now())
    : undefined;
}

/** Returns the writer of a method's responses: JSON, raw, one streamed JSON body, or an event stream. */
function answerOf(served: ServedMethod, siblings: readonly ServedMethod[], transport: TransportParts): Respond {
  const { dispatcher, problems } = transport;
  if (served.kind === "bidi_streaming") {
    throw new Error(`${served.method}: bidirectional methods have a WebSocket path, not an http rule`);
  }
  const status = served.rules.successStatus || 200;
  if (answersRaw(served.method)) return rawAnswer(served, dispatcher, status);
  if (served.kind === "server_streaming") {
    const write = compileWriter(served.method.output);
    const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
    const isBroadcast = served.rules.public && served.rules.follows;
    const broadcast = isBroadcast ? broadcastAnswer(transport, new SharedStream(write), headers) : undefined;
    return async (call, request, reply) => {
      // Requests with a deadline and HEAD requests have a stream of their own.
      if (broadcast && call.deadline === Number.POSITIVE_INFINITY && reply.request.method !== "HEAD")
        return broadcast(call, request, reply);
      const start = served.resumesAfter && call.start;
      const messages = dispatcher.serverStream(call, request)[Symbol.asyncIterator]();
      const toProblem = (thrown: unknown) =>
        problems.document(problems.failure(thrown, call.requestId), call.requestId);
      const stream = await openEventStream(messages, write, toProblem, start);
      return sendStream(call, reply.headers(headers), messages, stream);
    };
  }
  if (served.rules.streamedBy !== "") return streamedAnswer(served, siblings, dispatcher);
  const encode = compileEncoder(served.method.output);
  return async (call, request, reply) => {
    const message = await dispatcher.unary(call, request);
    if (status === 204) return reply.code(204).send();
    return reply
      .code(call.isCreated ? served.rules.createdStatus || status : status)
      .type("application/json; charset=utf-8")
      .send(encode(message));
  };
}

/** Creates the writer of a public stream that sends the same messages to all followers. */
function broadcastAnswer(transport: TransportParts, shared: SharedStream, headers: Record<string, string>): Respond {
  return async (call, request, reply) => {
    const { raw } = reply;
    const { messages, release } = await transport.dispatcher.broadcast(call, request, () => raw.end());
    reply.hijack();
    if (isClosed(raw)) {
      release();
      return reply;
    }
    raw.once("close", release);
    raw.writeHead(200, { ...headers, ...answerHeaders(transport, peerOf(reply.request.raw, transport), call) });
    shared.follow(messages, raw);
    return reply;
  };
}

/** Returns whether the client has disconnected. Node's HTTP/2 response has no `destroyed`, but its stream has. */
export function isClosed(response: ServerResponse): boolean {
  return response instanceof Http2ServerResponse ? response.stream.destroyed : response.destroyed;
}

/** Creates the writer of raw bytes, in one piece or in chunks. If the stream fails, the connection is closed. */
function rawAnswer(served: ServedMethod, dispatcher: CallDispatcher, status: number): Respond {
  const headersFor = compileRawHeaders(served);
  if (served.kind === "unary") {
    return async (call, request, reply) => {
      const { contentType, data } = asHttpBody(await dispatcher.unary(call, request));
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.length);
      return reply
        .code(status)
        .headers(headersFor(reply.request.params as Record<string, string>, contentType))
        .send(bytes);
    };
  }
  return async (call, request, reply) => {
    const messages = dispatcher.serverStream(call, request)[Symbol.asyncIterator]();
    const first = await messages.next();
    const contentType = first.done ? "" : asHttpBody(first.value).contentType;
    const { announcedBytes: bytes } = call;
    reply.code(status).headers({
      ...headersFor(reply.request.params as Record<string, string>, contentType),
      ...(bytes !== undefined && { "content-length": String(bytes) }),
    });
    return sendStream(call, reply, messages, streamBytes(first, messages));
  };
}

function sendStream(
  call: GatewayCall,
  reply: FastifyReply,
  source: AsyncIterator<Message>,
  chunks: AsyncIterable<string | Uint8Array>,
): FastifyReply {
  const body = Readable.from(closeOnFailure(chunks, reply.raw), { objectMode: false, highWaterMark: 1 });
  return sendBody(call, reply, source, body);
}

/** Sends a body, and ends its source when the body closes. HEAD requests receive only the headers. */
function sendBody(
  call: GatewayCall,
  reply: FastifyReply,
  source: AsyncIterator<Message>,
  body: Readable,
): FastifyReply {
  // A body that was never read closes without running its generator, so the source is ended here.
  body.once("close", () => void source.return?.());
  // Fastify never resolves for an HTTP/2 response that has already closed.
  if (reply.request.method !== "HEAD" && !isClosed(reply.raw)) return reply.send(body);
  call.cancel();
  body.destroy();
  return reply.send();
}

/**
 * Passes chunks on. If the source fails, resets an HTTP/2 stream, which Node would otherwise end normally, and
 * rethrows.
 */
async function* closeOnFailure<T>(chunks: AsyncIterable<T>, response: object): AsyncGenerator<T> {
  try {
    yield* chunks;
  } catch (thrown) {
    if (response instanceof Http2ServerResponse) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    throw thrown;
  }
}

/** Creates the writer of a response that is streamed by another method of the service (option `streamed_by`). */
function streamedAnswer(served: ServedMethod, siblings: readonly ServedMethod[], dispatcher: CallDispatcher): Respond {
  const sibling = siblings.find((candidate) => candidate.method.name === served.rules.streamedBy);
  if (sibling?.kind !== "server_streaming") {
    throw new Error(`${served.method}: its service has no server stream ${served.rules.streamedBy}`);
  }
  const [answer, part] = [served.method.output, sibling.method.output];
  const headers = { "content-type": "application/json; charset=utf-8" };
  const code = served.rules.successStatus || 200;
  if (hasStreamedFields(answer, part)) {
    const streamFields = compileStreamedFields(answer);
    return async (call, request, reply) => {
      const messages = dispatcher.serverStream(call, request, sibling)[Symbol.asyncIterator]();
      const { contentLength, chunks } = await streamFields({ [Symbol.asyncIterator]: () => messages });
      reply.code(code).headers({ ...headers, ...(contentLength !== undefined && { "content-length": contentLength }) });
      return sendStream(call, reply, messages, chunks);
    };
  }
  const streamBody = compileStreamedBody(answer, part);
  return async (call, request, reply) => {
    const messages = dispatcher.serverStream(call, request, sibling)[Symbol.asyncIterator]();
    const { contentLength, body } = await streamBody({ [Symbol.asyncIterator]: () => messages });
    reply.code(code).headers({ ...headers, "content-length": contentLength });
    return sendBody(call, reply, messages, body);
  };
}
