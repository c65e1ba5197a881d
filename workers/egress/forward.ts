import http from "node:http";
import { pipeline } from "node:stream";
import { formatTarget, type HostPort } from "../../src/platform/outgoing/address-rules.ts";
import type { Exit } from "./egress-route.ts";
import { loginRefused } from "./proxy-failure.ts";

/** Hop-by-hop headers (RFC 9110, section 7.6.1). */
const connectionHeaders = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Chromium's limit, in bytes, for response headers. Node's default of 16 KiB would break sites with large cookies. */
export const maxHeaderBytes = 256 * 1024;

/** Milliseconds without a response after which the proxy is probed. The request continues. */
const silenceMs = 10_000;

/** A plain http request of a page, with the exit to its checked target. */
export interface Forwarding {
  request: http.IncomingMessage;
  response: http.ServerResponse;
  target: HostPort;
  exit: Exit;
  /** Called once if no response arrives. */
  onFailure: (error: Error) => void;
}

/**
 * Forwards a plain http request to its target and the response to the browser. If no response arrives, the browser's
 * connection is closed, so that the page sees the same network error as without a relay.
 */
export function forwardRequest({ request, response, target, exit, onFailure }: Forwarding): void {
  const outgoing = http.request(outgoingOptions(request, target, exit));
  const silence = setTimeout(() => exit.onSilence?.(), silenceMs);
  const fail = (error: Error) => {
    if (!response.headersSent && !response.destroyed) onFailure(error);
    response.destroy();
  };
  outgoing.once("error", fail);
  // If a site switches protocols unasked, Node closes the connection without an error event.
  outgoing.once("close", () => {
    clearTimeout(silence);
    if (!response.headersSent) fail(new Error("the site closed the connection without a response"));
  });
  outgoing.once("response", (incoming) => {
    clearTimeout(silence);
    // A forwarded 407 would prompt the page's user for the credentials of the customer's proxy.
    if (exit.proxy && incoming.statusCode === 407) {
      fail(loginRefused());
      outgoing.destroy();
      return;
    }
    exit.onAnswer?.();
    try {
      response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, endToEndHeaders(incoming.rawHeaders));
    } catch (error) {
      incoming.destroy();
      fail(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    pipeline(incoming, response, () => undefined);
  });
  response.once("close", () => outgoing.destroy());
  pipeline(request, outgoing, () => undefined);
}

function outgoingOptions(request: http.IncomingMessage, target: HostPort, exit: Exit): http.RequestOptions {
  const { agent, lookup, proxy } = exit;
  const url = new URL(request.url ?? "");
  const path = `${url.pathname}${url.search}`;
  const headers = endToEndHeaders(request.rawHeaders);
  // Node frames a GET or DELETE body only if this header is set. A site would parse an unframed body as the next
  // request.
  if (request.headers["transfer-encoding"] !== undefined) headers.push("transfer-encoding", "chunked");
  if (proxy?.authorization !== undefined) headers.push("proxy-authorization", proxy.authorization);
  return {
    ...(proxy?.target ?? target),
    path: proxy ? `${new URL(`http://${formatTarget(target)}`).origin}${path}` : path,
    method: request.method,
    headers,
    setHost: false,
    insecureHTTPParser: true,
    maxHeaderSize: maxHeaderBytes,
    agent,
    ...(lookup && { lookup }),
  };
}

/**
 * Returns the end-to-end headers that Node can send, as a flat list of names and values with order and case kept. Drops
 * `Content-Length` if `Transfer-Encoding` is present (RFC 9112, section 6.3).
 */
function endToEndHeaders(raw: readonly string[]): string[] {
  const kept: string[] = [];
  const isCoded = raw.some((name, index) => index % 2 === 0 && name.toLowerCase() === "transfer-encoding");
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? "";
    const value = raw[index + 1] ?? "";
    const key = name.toLowerCase();
    const isFraming = connectionHeaders.has(key) || (isCoded && key === "content-length");
    if (!isFraming && isSendable(name, value)) kept.push(name, value);
  }
  return kept;
}

/** Returns false for headers that Node refuses to send, such as a value with a control character. */
function isSendable(name: string, value: string): boolean {
  try {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
