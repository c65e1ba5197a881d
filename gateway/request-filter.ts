import { type IncomingMessage, maxHeaderSize, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Failure, failFields } from "../src/platform/errors.ts";
import type { Cors } from "./cors.ts";
import { answerHeaders, peerOf, refuse, type TransportParts } from "./transport-parts.ts";

export interface RequestFilterOptions {
  readonly transport: TransportParts;
  readonly cors: Cors;
  readonly isOwnHost: (host: string) => boolean;
}

/** Returns true to admit a request; otherwise sends a response and returns false. */
export type RequestFilter = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Creates the check of Host and Expect and the CORS handling in front of all HTTP transports and WebSocket upgrades.
 */
export function createRequestFilter({ transport, cors, isOwnHost }: RequestFilterOptions): RequestFilter {
  return (request, response) => {
    const peer = peerOf(request, transport);
    const isPreflight = cors.mark(request, response);
    const failure = failureOf(request, isOwnHost);
    if (failure) {
      refuse(transport, request, response, failure);
      return false;
    }
    if (isPreflight) {
      response.writeHead(204, answerHeaders(transport, peer, undefined)).end();
      return false;
    }
    return true;
  };
}

function failureOf({ headers }: IncomingMessage, isOwnHost: (host: string) => boolean): Failure | undefined {
  const { expect } = headers;
  const host = headers[":authority"] ?? headers.host;
  if (typeof host !== "string") return failFields("bad-request", { Host: "is required" });
  if (!isAuthority(host)) return failFields("bad-request", { Host: "must be a name or an address, and a port if any" });
  if (!isOwnHost(host)) return failFields("bad-request", { Host: "is not a name of this service" });
  if (expect !== undefined && expect.toLowerCase() !== "100-continue") {
    return failFields("bad-request", { Expect: "must be 100-continue" });
  }
  return undefined;
}

/** Returns whether a URL can have this authority (RFC 3986, section 3.2), without user information. */
function isAuthority(host: string): boolean {
  return !/[/?#@\\\s]/.test(host) && URL.canParse(`http://${host}`);
}

function faultOf(code: string): Record<string, string> {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return { headers: `must have at most ${maxHeaderSize} bytes together with the path: send less` };
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return { request: "is incomplete after the time limit: send it faster, or in smaller parts" };
    default:
      return { request: "cannot be read as HTTP/1.1: check the method, the path and the header lines" };
  }
}

/** Creates a handler that responds to invalid HTTP/1.1: malformed lines, headers over 16 KiB, a stalled client. */
export function refuseBroken(transport: TransportParts): (error: Error, socket: Socket) => void {
  return (error, socket) => {
    if (!socket.writable || ("code" in error && error.code === "ECONNRESET")) {
      socket.destroy();
      return;
    }
    const peer = transport.resolvePeer(socket.remoteAddress, () => undefined);
    const code = "code" in error ? String(error.code) : "";
    const failure = failFields("bad-request", faultOf(code));
    const { status, headers, body } = transport.problems.answer(failure, peer.requestId);
    const all = {
      ...headers,
      ...answerHeaders(transport, peer, undefined),
      "content-length": String(Buffer.byteLength(body)),
      connection: "close",
    };
    // Node creates no response object for an invalid request.
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} Bad Request\r\n${lines.join("")}\r\n${body}`);
  };
}
