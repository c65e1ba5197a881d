import type { McpHttpHandler, McpServer, Server } from "@modelcontextprotocol/server";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Principal } from "../../src/kernel/call.ts";
import type { Config } from "../../src/platform/config.ts";
import { type FieldFault, fail, failFields } from "../../src/platform/errors.ts";
import type { Log } from "../../src/platform/log.ts";
import { hostName } from "../../src/platform/loopback.ts";
import { parseJson } from "../../src/platform/rest-json/parse.ts";
import type { ClientBuffer } from "../client-buffers.ts";
import type { Cors } from "../cors.ts";
import { rateLimitHeaders } from "../gateway-call.ts";
import { namesOfService } from "../own-hosts.ts";
import type { Peer } from "../peer.ts";
import { refuseEmpty } from "../policies/address-bucket.ts";
import { isClosed, type RestRoute } from "../rest/mount.ts";
import { parseTemplate } from "../rest/template.ts";
import { peerOf, type TransportParts } from "../transport-parts.ts";
import type { McpClient } from "./tool-server.ts";

const mcpPath = "/mcp";

export const mcpRoute: RestRoute = { verb: "POST", hasHead: false, template: parseTemplate(mcpPath) };

/** Maximum bytes of a message. The longest messages are calls of `act` with texts to type. */
const longestMessage = 262_144;

/** Creates the MCP server that handles one request. */
export type CreateMcpServer = (client: McpClient) => Server | McpServer;

export interface McpParts {
  readonly transport: TransportParts;
  readonly config: Pick<Config, "publicUrl">;
  readonly cors: Cors;
  readonly log: Log;
  /** Loads the function that creates servers. Called at the first request. */
  readonly loadServer: () => Promise<CreateMcpServer>;
}

/** Account and address to which the bytes held for a request are counted. */
interface Holder {
  readonly accountId: string;
  readonly clientAddress: string;
  buffer: ClientBuffer | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Sender of a request to the MCP server, and the bytes held for the request. */
    mcpSender?: { readonly principal: Principal; readonly buffer: ClientBuffer | undefined };
  }
}

/** JSON-RPC message, reduced to the members that are read here. */
interface RpcMessage {
  readonly method?: unknown;
  readonly id?: unknown;
  readonly params?: { readonly name?: unknown; readonly arguments?: unknown };
}

const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns whether a message calls a tool. No token is drawn for the message itself, because the methods that the tool
 * calls draw tokens.
 */
const isToolCall = ({ method, id, params }: RpcMessage): boolean =>
  method === "tools/call" &&
  (typeof id === "string" || typeof id === "number") &&
  typeof params?.name === "string" &&
  (params.arguments === undefined || isObject(params.arguments));

/**
 * Mounts the MCP server (https://modelcontextprotocol.io): Streamable HTTP without sessions, for revision 2026-07-28
 * and its predecessors. The package, its schemas and the tools take 0.1 s to load, so the first request loads them.
 */
export function mountMcp(rest: FastifyInstance, parts: McpParts): Pick<McpHttpHandler, "close"> {
  const { transport, config, cors, log, loadServer } = parts;
  const isServiceName = namesOfService(config);
  const clients = new WeakMap<Request, McpClient>();
  let handler: Promise<McpHttpHandler> | undefined;

  async function loadHandler(): Promise<McpHttpHandler> {
    const { createMcpHandler } = await import("@modelcontextprotocol/server");
    // Called after the import, which may fail and be retried: the metric of the tools can be registered only once.
    const createServer = await loadServer();
    return createMcpHandler(
      ({ requestInfo }) => {
        const client = requestInfo && clients.get(requestInfo);
        if (!client) throw new Error("expected a request of a known client");
        return createServer(client);
      },
      { onerror: (error) => log.debug({ err: error }, "refused an MCP message") },
    );
  }

  /**
   * Throws `forbidden` for hosts that are not names of the service and for pages of origins that are not allowed, as a
   * defence against DNS rebinding.
   */
  function assertHostAndOrigin({ raw }: FastifyRequest): void {
    const { origin } = raw.headers;
    const host = raw.headers[":authority"] ?? raw.headers.host;
    if (!isServiceName(hostName(String(host)))) {
      const detail = `${mcpPath} is served under the host of PUBLIC_URL and on loopback: use one of these`;
      throw fail("forbidden", {}, { detail });
    }
    const isOwn = origin === undefined || (URL.canParse(origin) && isServiceName(new URL(origin).hostname));
    if (!isOwn && !cors.permits(raw))
      throw fail("forbidden", {}, { detail: "the Origin is not allowed: the operator can add it to CORS_ORIGINS" });
  }

  async function admit(peer: Peer, reply: FastifyReply): Promise<Principal> {
    const principal = await transport.dispatcher.identify(peer, (state) => reply.headers(rateLimitHeaders(state)));
    const { kind, sessionId, allowsAddress } = principal;
    if (kind !== "key" || sessionId !== undefined)
      throw fail("invalid-key", {}, { detail: `${mcpPath} accepts only API keys: send an API key in Authorization` });
    if (allowsAddress?.(peer.clientAddress) === false) {
      const { clientAddress: from } = peer;
      const detail = `the key does not allow the address ${from}: use an allowed address, or add ${from} to the key's \`addresses\``;
      throw fail("forbidden", {}, { detail });
    }
    return principal;
  }

  rest.route({
    method: "POST",
    url: mcpPath,
    bodyLimit: longestMessage,
    // Runs before the body is read, so that clients without a key cannot make the service parse it.
    onRequest: async (request, reply) => {
      assertHostAndOrigin(request);
      const peer = peerOf(request.raw, transport);
      const principal = await admit(peer, reply);
      request.raw.accountId = principal.accountId;
      const { accountId } = principal;
      const { clientAddress } = peer;
      const holder: Holder = { accountId, clientAddress, buffer: undefined };
      transport.buffers.assertRoom(holder);
      if (!isClosed(reply.raw)) transport.buffers.openExchange(holder, request.raw, reply.raw, longestMessage);
      request.mcpSender = { principal, buffer: holder.buffer };
    },
    handler: async (request, reply) => {
      const closed = closeSignal(reply);
      const peer = peerOf(request.raw, transport);
      if (!request.mcpSender) throw new Error("expected an admitted request");
      const client: McpClient = {
        ...request.mcpSender,
        closed,
        peer: { ...peer, header: (name) => (name === "idempotency-key" ? undefined : peer.header(name)) },
        async draw() {
          const { state, owner } = await transport.dispatcher.drawForNoMethod(peer);
          if (!reply.sent) reply.headers(rateLimitHeaders(state));
          refuseEmpty(state, owner);
        },
      };
      const message = readMessage(request.body);
      if (!isToolCall(message)) await client.draw();
      if (message.method === "subscriptions/listen") return refuseSubscription(reply, message);
      const fetched = new Request(`${config.publicUrl}${mcpPath}`, {
        method: "POST",
        headers: mcpHeaders(request),
        signal: closed,
      });
      clients.set(fetched, client);
      handler ??= loadHandler().catch((error) => {
        handler = undefined;
        throw error;
      });
      const response = await (await handler).fetch(fetched, { parsedBody: message });
      // The tool of a refused call did not run, so no token was drawn yet.
      if (isToolCall(message) && !response.ok) await client.draw();
      return sendResponse(reply, response);
    },
  });
  return { close: async () => (await handler?.catch(() => undefined))?.close() };
}

/** Returns a signal that aborts when the client closes the response before its end. */
function closeSignal({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController();
  if (isClosed(raw)) closed.abort();
  raw.once("close", () => {
    if (!raw.writableFinished) closed.abort();
  });
  return closed.signal;
}

function readMessage(body: unknown): RpcMessage {
  const faults: FieldFault[] = [];
  const message = body instanceof Buffer ? parseJson(body, faults) : undefined;
  const [fault] = faults;
  if (fault) throw failFields("validation-failed", { [fault.field]: fault.message });
  if (!isObject(message)) throw failFields("validation-failed", { body: "must be one JSON-RPC message" });
  return message;
}

/** Returns the headers that the MCP handler reads: `mcp-*`, Accept and Content-Type. */
function mcpHeaders({ headers }: FastifyRequest): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    typeof value === "string" && (/^mcp-/.test(name) || name === "accept" || name === "content-type")
      ? [[name, value]]
      : [],
  );
}

/** Refuses `subscriptions/listen`. The list of tools is constant, so it has no changes to report. */
function refuseSubscription(reply: FastifyReply, { id }: RpcMessage): FastifyReply {
  const error = { code: -32601, message: "subscriptions/listen is not supported: the list of tools is constant" };
  return reply
    .code(404)
    .type("application/json")
    .send(JSON.stringify({ jsonrpc: "2.0", id: id ?? null, error }));
}

function sendResponse(reply: FastifyReply, response: Response): FastifyReply {
  // HTTP/2 forbids this header.
  response.headers.delete("connection");
  response.headers.set("x-accel-buffering", "no");
  return reply.send(response);
}
