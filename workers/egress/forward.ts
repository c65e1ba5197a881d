import http from "node:http";
import { pipeline } from "node:stream";
import { formatTarget, type Target } from "../../src/platform/outgoing/address-rules.ts";
import { loginRefused } from "./proxy-failure.ts";
import type { Exit } from "./way-out.ts";

/** Headers that belong to one connection and not to the request or answer that travels over it (RFC 9110, section 7.6.1). */
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

/** What Chromium accepts of a site's headers; Node's own limit of 16 KiB would break sites with large cookies. */
export const maxHeaderBytes = 256 * 1024;

/** How long a proxy may be silent before it is asked whether it still works; the request goes on. */
const silenceMs = 10_000;

/** One plain http request of a page, and the way to its checked target. */
export interface Forwarding {
  request: http.IncomingMessage;
  response: http.ServerResponse;
  target: Target;
  exit: Exit;
  /** Called once when no answer came. */
  onFailure: (error: Error) => void;
}

/**
 * Passes a plain http request on to its target and the answer back.
 * Where no answer comes, the browser's connection is closed without one, so that a page sees the network error that it
 * would see without a relay, and not a page of the relay's.
 */
export function forwardRequest({ request, response, target, exit, onFailure }: Forwarding): void {
  const outgoing = http.request(outgoingOptions(request, target, exit));
  const silence = setTimeout(() => exit.onSilence?.(), silenceMs);
  const fail = (error: Error) => {
    if (!response.headersSent && !response.destroyed) onFailure(error);
    response.destroy();
  };
  outgoing.once("error", fail);
  // A site may also switch protocols unasked; Node then closes the connection without calling it an error.
  outgoing.once("close", () => {
    clearTimeout(silence);
    if (!response.headersSent) fail(new Error("the site ended the connection without an answer"));
  });
  outgoing.once("response", (incoming) => {
    clearTimeout(silence);
    // A page that got to see this would be asked for the name and the password of the customer's proxy.
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

function outgoingOptions(request: http.IncomingMessage, target: Target, exit: Exit): http.RequestOptions {
  const { agent, lookup, proxy } = exit;
  const url = new URL(request.url ?? "");
  const path = `${url.pathname}${url.search}`;
  const headers = endToEndHeaders(request.rawHeaders);
  // Node frames the body of a GET or DELETE only when it is told to: without a length the site would take it for a request.
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
 * Gives the headers that travel on, as the flat list of names and values that they came in: order and case are kept. A
 * length beside a transfer coding is wrong wherever it differs from what is sent (RFC 9112, section 6.3), and left out.
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

/** A site may send what Node refuses to send on (a control character in a value): such a header is left out. */
function isSendable(name: string, value: string): boolean {
  try {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
