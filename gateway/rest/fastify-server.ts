import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { ServedService } from "../../src/kernel/registry.ts";
import { asFailure, fail, failFields } from "../../src/platform/errors.ts";
import { rateLimitHeaders } from "../gateway-call.ts";
import { longestPublicBody } from "../message-size.ts";
import { renderNotFound, wantsPage } from "../pages/error-page.ts";
import { unscriptedHeaders } from "../pages/shell.ts";
import { refuseEmpty } from "../policies/address-bucket.ts";
import { answerHeaders, peerOf, refuse, type TransportParts } from "../transport-parts.ts";
import { documentAdmission } from "./document-admission.ts";
import { mountRest, type RestRoute } from "./mount.ts";
import { bodyTooLarge } from "./raw-body.ts";

// Maximum characters of a path variable: not less than the longest path that Node accepts, because the rules of
// messages limit ids.
const longestPathVariable = 65_536;

/**
 * Creates the REST server. The server does not listen; it receives requests from the shared port. `others` are routes
 * that the caller mounts, for the Allow header.
 */
export function createRestServer(
  services: readonly ServedService[],
  transport: TransportParts,
  others: readonly RestRoute[],
): FastifyInstance {
  const app = fastify({
    bodyLimit: longestPublicBody,
    genReqId: (raw) => peerOf(raw, transport).requestId,
    forceCloseConnections: false,
    schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
    routerOptions: {
      maxParamLength: longestPathVariable,
      // Fastify's own response to an invalid path is not a problem document.
      onBadUrl: (_path, request, response) =>
        refuse(transport, request, response, failFields("bad-request", { path: "is not a valid URL path" })),
    },
  });
  readBodies(app);
  const routes = [...mountRest(app, services, transport), ...others];
  app.addHook("onSend", (request, reply, payload, done) => {
    // Responses to requests that reach no method may already have the headers of their bucket.
    if (request.is404 || reply.hasHeader("x-ratelimit-bucket")) reply.header("x-request-id", request.id);
    else reply.headers(answerHeaders(transport, peerOf(request.raw, transport), request.call));
    done(null, payload);
  });
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const isTooLarge = error.code === "FST_ERR_CTP_BODY_TOO_LARGE";
    // `SlowBodies` closes the connection after the response, unless the body ends in time.
    if (isTooLarge) reply.removeHeader("connection");
    const thrown = isTooLarge ? bodyTooLarge(request.routeOptions.bodyLimit) : error;
    if (request.call) await transport.dispatcher.refuse(request.call, thrown);
    if (request.is404 && asFailure(thrown).slug === "not-found" && wantsPage(request.raw))
      return reply.code(404).headers(unscriptedHeaders).send(renderNotFound(request.url, request.id));
    return sendProblem(thrown, request, reply, transport);
  });
  // Runs before the body is read, because Fastify has its own rules for bodies of unknown methods.
  const admitDocument = documentAdmission(transport);
  app.addHook("onRequest", (request, reply, done) => {
    request.raw.route = request.routeOptions.url;
    if (request.is404) {
      refuseUnknown(request, reply, routes, transport).catch(done);
    } else if (request.routeOptions.config.isMethod || admitDocument(request, reply)) {
      done();
    }
  });
  return app;
}

/**
 * Replaces Fastify's compilers of JSON schemas, because no route has a schema and loading the compilers takes 60 ms.
 */
function refuseSchema(): never {
  throw new Error("a route must not have a schema: the rules of requests are in the proto files");
}

/** Paths of the first requests of unsupported protocols that clients may use below `/connect`. */
const unservedProtocols = [
  ["WebDriver", /^\/connect\/([^/?]+\/)?(wd\/hub\/)?session\b/],
  ["Playwright's own protocol", /^\/connect\/([^/?]+\/)?json\/?(\?|$)/],
] as const;

/** Refuses a request with an unknown path, or with a verb that the path does not support. */
async function refuseUnknown(
  { raw, url, method }: FastifyRequest,
  reply: FastifyReply,
  routes: readonly RestRoute[],
  transport: TransportParts,
): Promise<never> {
  const { state, owner } = await transport.dispatcher.drawForNoMethod(peerOf(raw, transport));
  reply.headers(rateLimitHeaders(state));
  refuseEmpty(state, owner);
  for (const [protocol, pattern] of unservedProtocols)
    if (pattern.test(url))
      throw failFields("bad-request", {
        path: `is for ${protocol}, which is not supported: use chromium.connectOverCDP(url), or another CDP client`,
      });
  const allowed = allowedVerbs(routes, url);
  if (allowed.length === 0)
    throw fail("not-found", {}, { detail: "no endpoint has this path: /docs lists all endpoints" });
  reply.header("allow", allowed.join(", "));
  throw fail("method-not-allowed", {}, { detail: `this path accepts ${allowed.join(", ")}, not ${method}` });
}

/** Passes bodies on as bytes. The message reader parses them after the policies have run. */
function readBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const asBuffer = (_request: FastifyRequest, body: Buffer, done: (error: null, body: Buffer) => void): void =>
    done(null, body);
  app.addContentTypeParser(["application/json", "application/x-www-form-urlencoded"], { parseAs: "buffer" }, asBuffer);
}

function sendProblem(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { problems }: TransportParts,
): FastifyReply {
  const { status, headers, body } = problems.answer(error, request.id, wantsPage(request.raw));
  // Sent as bytes, because Fastify adds a charset to JSON text, and problem+json has no charset (RFC 9457).
  return reply.code(status).headers(headers).send(Buffer.from(body));
}

/** Returns the verbs of a path, for the Allow header. */
function allowedVerbs(routes: readonly RestRoute[], url: string): string[] {
  const path = url.split("?", 1)[0] ?? "";
  const here = routes.filter(({ template }) => template.pattern.test(path));
  return [...new Set(here.flatMap(({ verb, hasHead }) => (hasHead ? [verb, "HEAD"] : [verb])))];
}
