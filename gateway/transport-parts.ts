import type { IncomingMessage, ServerResponse } from "node:http";
import type { AccessLog } from "./access-log.ts";
import type { CallDispatcher } from "./call-dispatcher.ts";
import type { ClientBuffers } from "./client-buffers.ts";
import { type GatewayCall, rateLimitHeaders } from "./gateway-call.ts";
import { wantsPage } from "./pages/error-page.ts";
import type { HeaderReader, Peer, ResolvePeer } from "./peer.ts";
import type { Problems } from "./problems.ts";
import type { SlowBodies } from "./slow-bodies.ts";

/** Parts that all transports share (REST, Connect, gRPC, WebSocket, MCP). */
export interface TransportParts {
  readonly dispatcher: CallDispatcher;
  readonly problems: Problems;
  readonly resolvePeer: ResolvePeer;
  readonly bodies: SlowBodies;
  readonly buffers: ClientBuffers;
  /** Log of requests, if configured. */
  readonly accessLog: AccessLog | undefined;
}

declare module "node:http" {
  interface IncomingMessage {
    /** Peer of the request, once resolved. */
    peer?: Peer;
  }
}

/** Resolves the peer of an HTTP request, once. */
export function peerOf(request: IncomingMessage, { resolvePeer }: TransportParts): Peer {
  request.peer ??= resolvePeer(request.socket.remoteAddress, headersOf(request));
  return request.peer;
}

/** Returns a reader of the headers of an HTTP request. */
function headersOf({ headers }: IncomingMessage): HeaderReader {
  return (name) => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
}

/** Returns the headers of every response: request id, and the bucket of the call or else of the address. */
export function answerHeaders(
  { dispatcher }: TransportParts,
  peer: Peer,
  call: GatewayCall | undefined,
): Record<string, string> {
  const headers = call?.responseHeaders ?? { "x-request-id": peer.requestId };
  if ("x-ratelimit-bucket" in headers) return headers;
  return { ...headers, ...rateLimitHeaders(dispatcher.peekAddress(peer.clientAddress)) };
}

/** Responds to an HTTP request with a problem document, or with a page if a browser loads the URL. */
export function refuse(
  transport: TransportParts,
  request: IncomingMessage,
  response: ServerResponse,
  thrown: unknown,
  call?: GatewayCall,
): void {
  const peer = peerOf(request, transport);
  const { status, headers, body } = transport.problems.answer(thrown, peer.requestId, wantsPage(request));
  const length = String(Buffer.byteLength(body));
  response
    .writeHead(status, { ...headers, ...answerHeaders(transport, peer, call), "content-length": length })
    .end(body);
}
