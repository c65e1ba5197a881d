import type { Message } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { failFields } from "../../src/platform/errors.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import { GatewayCall } from "../call.ts";
import type { Gate } from "../policies/index.ts";
import type { Problems } from "../problems.ts";
import { compileStreamedBody } from "./capture-body.ts";
import { openEventStream } from "./event-stream.ts";
import { parseForm } from "./form-body.ts";
import { type HttpRoute, httpRouteOf } from "./http-rule.ts";
import { incomingOf, timeoutOf } from "./incoming.ts";
import { compileRequestReader } from "./request-reader.ts";
import { type PathTemplate, parseTemplate } from "./template.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The request on its way through the policies; absent where no method is called. */
    call?: GatewayCall;
  }
}

/** One REST route of the registry. */
export interface RestRoute {
  readonly verb: HttpRoute["verb"];
  readonly template: PathTemplate;
}

/** Runs a method and sends its answer. */
type Answer = (call: GatewayCall, request: Message, reply: FastifyReply) => Promise<FastifyReply>;

/** What the transport needs besides the registry. */
export interface RestContext {
  readonly gate: Gate;
  readonly problems: Problems;
}

/** Mounts every method that has a google.api.http rule, and returns the routes. */
export function mountRest(
  fastify: FastifyInstance,
  services: readonly ServedService[],
  context: RestContext,
): RestRoute[] {
  return services.flatMap(({ methods }) =>
    methods.flatMap((served) => {
      const route = httpRouteOf(served.method);
      if (!route) {
        return [];
      }
      const template = parseTemplate(route.template);
      mountRoute(fastify, served, route, template, context, answerOf(served, methods, context));
      return [{ verb: route.verb, template }];
    }),
  );
}

function mountRoute(
  fastify: FastifyInstance,
  served: ServedMethod,
  route: HttpRoute,
  template: PathTemplate,
  { gate }: RestContext,
  answer: Answer,
): void {
  const parseBody = served.rules.formBody ? parseForm : undefined;
  const read = compileRequestReader(served.method.input, route, template.variables, parseBody);
  const resumes = served.method.input.fields.find((field) => field.name === "after_event_id");
  fastify.route({
    method: route.verb,
    url: template.route,
    // Before the body is read: nobody without a key makes the service parse a mebibyte.
    onRequest: async (request, reply) => {
      const call = new GatewayCall(served, incomingOf(request), timeoutOf(request));
      request.call = call;
      followClient(call, reply);
      await gate.admit(call);
      checkContentType(request, served.rules.formBody);
    },
    handler: (request, reply) => {
      const call = callOf(request);
      const message = read({
        variables: request.params as Record<string, string>,
        query: request.query as Record<string, string | string[]>,
        body: request.body as Buffer | undefined,
      });
      const lastEventId = resumes && call.header("last-event-id");
      if (resumes && lastEventId) {
        Reflect.set(message, resumes.localName, lastEventId);
      }
      return answer(call, message, reply);
    },
  });
}

/** The parsers know both content types; a route takes the one that its method says. */
function checkContentType(request: FastifyRequest, formBody: boolean): void {
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
  const expected = formBody ? "application/x-www-form-urlencoded" : "application/json";
  if (type !== undefined && type !== expected) {
    throw failFields("bad-request", { "Content-Type": `must be ${expected}` });
  }
}

function callOf(request: FastifyRequest): GatewayCall {
  if (!request.call) {
    throw new Error("the request has not passed its policies");
  }
  return request.call;
}

/** Ends the call when its client goes away, or its deadline passes. */
function followClient(call: GatewayCall, reply: FastifyReply): void {
  const { raw } = reply;
  // Node emits close on the request as soon as its body is read; the response closes with the connection.
  raw.once("close", () => {
    clearTimeout(timer);
    if (!raw.writableFinished) {
      call.cancel();
    }
  });
  const timer = Number.isFinite(call.deadline)
    ? setTimeout(() => call.cancel(), call.deadline - performance.now())
    : undefined;
}

/** How the answer of a method leaves: as JSON, raw, as one streamed JSON body, or as an event stream. */
function answerOf(served: ServedMethod, siblings: readonly ServedMethod[], { gate, problems }: RestContext): Answer {
  if (served.kind === "bidi_streaming") {
    throw new Error(`${served.method}: bidirectional methods have a WebSocket path, not an http rule`);
  }
  const status = served.rules.successStatus || 200;
  if (served.kind === "server_streaming") {
    const write = compileWriter(served.method.output);
    return async (call, request, reply) => {
      const stream = await openEventStream(gate.serverStream(call, request), write, (thrown) =>
        problems.document(thrown, call.requestId),
      );
      return reply.code(200).headers({ "content-type": "text/event-stream", "cache-control": "no-store" }).send(stream);
    };
  }
  if (served.rules.streamedBy !== "") {
    return streamedAnswer(served, siblings, gate);
  }
  if (served.method.output.typeName === "google.api.HttpBody") {
    return async (call, request, reply) => {
      const { contentType, data } = (await gate.unary(call, request)) as Message & {
        contentType: string;
        data: Uint8Array;
      };
      return reply
        .code(status)
        .type(contentType)
        .send(Buffer.from(data.buffer, data.byteOffset, data.length));
    };
  }
  const write = compileWriter(served.method.output);
  return async (call, request, reply) => {
    const message = await gate.unary(call, request);
    if (status === 204) {
      return reply.code(204).send();
    }
    return reply
      .code(status)
      .type("application/json; charset=utf-8")
      .send(JSON.stringify(write(message)));
  };
}

function streamedAnswer(served: ServedMethod, siblings: readonly ServedMethod[], gate: Gate): Answer {
  const sibling = siblings.find((candidate) => candidate.method.name === served.rules.streamedBy);
  if (sibling?.kind !== "server_streaming") {
    throw new Error(`${served.method}: its service has no server stream ${served.rules.streamedBy}`);
  }
  const streamBody = compileStreamedBody(served.method.output, sibling.method.output);
  return async (call, request, reply) => {
    const { contentLength, body } = await streamBody(gate.serverStream(call, request, sibling));
    return reply
      .code(served.rules.successStatus || 200)
      .headers({ "content-type": "application/json; charset=utf-8", "content-length": contentLength })
      .send(body);
  };
}
