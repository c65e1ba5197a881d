import type { IncomingMessage } from "node:http";
import { type BlockList, isIP, type Socket } from "node:net";
import type { Config } from "../src/platform/config.ts";
import { failFields } from "../src/platform/errors.ts";
import { hostName, isLoopback } from "../src/platform/loopback.ts";
import type { HttpHandler } from "./listen.ts";
import type { Gate } from "./policies/index.ts";
import type { Problems } from "./problems.ts";
import { rateLimitHeaders } from "./rate-limit-headers.ts";
import { endWithAnswer } from "./raw-answer.ts";
import { requestIdOf } from "./request-id.ts";

/** Who sent a request, as every transport sees it. */
export interface Peer {
  readonly requestId: string;
  readonly clientAddress: string;
}

const peers = new WeakMap<object, Peer>();

/** Says who sent a request that has come through the front. */
export function peerOf(request: object): Peer {
  const peer = peers.get(request);
  if (!peer) {
    throw new Error("the request has not come through the front");
  }
  return peer;
}

/** Names the peer of a request: its id, and its address as far as trusted proxies tell it. */
export function meet(request: IncomingMessage, trusted: BlockList, makeId: () => string): Peer {
  const received = request.headers["x-request-id"];
  const peer = {
    requestId: requestIdOf(typeof received === "string" ? received : undefined, makeId),
    clientAddress: clientAddress(request, trusted),
  };
  peers.set(request, peer);
  return peer;
}

/** Walks X-Forwarded-For from the nearest hop outwards, as long as the hop is a trusted proxy. */
function clientAddress(request: IncomingMessage, trusted: BlockList): string {
  const forwarded = request.headers["x-forwarded-for"];
  const hops = typeof forwarded === "string" ? forwarded.split(",").map((hop) => hop.trim()) : [];
  let address = request.socket.remoteAddress ?? "unknown";
  while (hops.length > 0 && isTrusted(trusted, address)) {
    const hop = hops.pop() ?? "";
    if (isIP(hop) === 0) {
      break;
    }
    address = hop;
  }
  return address;
}

function isTrusted(trusted: BlockList, address: string): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 4 ? "ipv4" : "ipv6");
}

const EXPOSED =
  "X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-RateLimit-Bucket, Retry-After, " +
  "Idempotency-Replayed, Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin";
const ALLOWED_HEADERS =
  "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id, X-Request-Timeout-Ms, X-BYOK-LLM-API-Key, " +
  "Traceparent, Tracestate, Connect-Protocol-Version, Connect-Timeout-Ms, Grpc-Timeout, X-Grpc-Web, X-User-Agent";

/** What the front needs. */
export interface FrontOptions {
  readonly trustedProxies: BlockList;
  readonly corsOrigins: readonly string[];
  /** Says whether a Host header names this service. Absent: any does. */
  readonly isOwnHost: ((host: string) => boolean) | undefined;
  readonly makeRequestId: () => string;
  readonly problems: Problems;
  readonly gate: Pick<Gate, "lookAtAddress">;
}

/**
 * Stands before every HTTP transport: names the request, refuses foreign hosts on a loopback listener (DNS rebinding),
 * answers CORS preflights (Fetch standard, section 3.2), and hands on the rest.
 */
export function front(options: FrontOptions, next: HttpHandler): HttpHandler {
  const { trustedProxies, isOwnHost, makeRequestId, problems, gate } = options;
  const origins = new Set(options.corsOrigins);
  return (request, response) => {
    const { requestId, clientAddress } = meet(request, trustedProxies, makeRequestId);
    response.setHeader("x-request-id", requestId);
    const host = request.headers[":authority"] ?? request.headers.host;
    if (isOwnHost?.(typeof host === "string" ? host : "") === false) {
      const failure = failFields("bad-request", { Host: "is not a name of this service" });
      const { status, headers, body } = problems.answer(failure, requestId);
      response.writeHead(status, { ...headers, ...rateLimitHeaders(gate.lookAtAddress(clientAddress)) });
      response.end(body);
      return;
    }
    const { origin } = request.headers;
    if (origin !== undefined && origins.has(origin)) {
      response.setHeader("access-control-allow-origin", origin);
      response.setHeader("vary", "Origin");
      response.setHeader("access-control-expose-headers", EXPOSED);
      if (request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined) {
        response.writeHead(204, {
          "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
          "access-control-allow-headers": ALLOWED_HEADERS,
          "access-control-max-age": "7200",
        });
        response.end();
        return;
      }
    }
    next(request, response);
  };
}

/** While the service listens on loopback alone, only loopback names and PUBLIC_URL's are its own. */
export function allowedHosts(config: Config): ((host: string) => boolean) | undefined {
  if (!isLoopback(config.host)) {
    return undefined;
  }
  const publicHost = new URL(config.publicUrl).hostname;
  return (host) => {
    const name = hostName(host);
    return isLoopback(name) || name === publicHost;
  };
}

/** Answers what came over HTTP/1.1 and cannot be read as a request: broken lines, headers over 16 KiB, a stalled client. */
export function refuseBroken({ makeRequestId, problems, gate }: FrontOptions): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || ("code" in error && error.code === "ECONNRESET")) {
      socket.destroy();
      return;
    }
    const requestId = makeRequestId();
    const code = "code" in error ? String(error.code) : error.message;
    const failure = failFields("bad-request", { request: `cannot be read as HTTP/1.1 (${code})` });
    const { status, headers, body } = problems.answer(failure, requestId);
    const shown = rateLimitHeaders(gate.lookAtAddress(socket.remoteAddress ?? "unknown"));
    endWithAnswer(socket, { status, headers: { ...headers, ...shown, "x-request-id": requestId }, body });
  };
}
