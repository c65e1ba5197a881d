import http from "node:http";
import type { LookupFunction } from "node:net";
import { pipeline } from "node:stream";
import type { Target } from "./address-rules.ts";

/** Headers that belong to one connection and not to the request or answer that travels over it (RFC 9110, section 7.6.1). */
const CONNECTION_HEADERS = new Set([
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
export const MAX_HEADER_BYTES = 256 * 1024;

/** One plain http request of a page, and the way to its checked target. */
export interface Forwarding {
  request: http.IncomingMessage;
  response: http.ServerResponse;
  target: Target;
  agent: http.Agent;
  lookup: LookupFunction;
  /** Called once when no answer came. */
  onFailure: (error: Error) => void;
}

/**
 * Passes a plain http request on to its target and the answer back.
 * Where no answer comes, the browser's connection is closed without one, so that a page sees the network error that it
 * would see without a relay, and not a page of the relay's.
 */
export function forwardRequest({ request, response, target, agent, lookup, onFailure }: Forwarding): void {
  const url = new URL(request.url ?? "");
  const outgoing = http.request({
    host: target.host,
    port: target.port,
    path: `${url.pathname}${url.search}`,
    method: request.method,
    headers: endToEndHeaders(request.rawHeaders),
    setHost: false,
    insecureHTTPParser: true,
    maxHeaderSize: MAX_HEADER_BYTES,
    agent,
    lookup,
  });
  const fail = (error: Error) => {
    if (!response.headersSent && !response.destroyed) onFailure(error);
    response.destroy();
  };
  outgoing.once("error", fail);
  // A site may also switch protocols unasked; Node then closes the connection without calling it an error.
  outgoing.once("close", () => {
    if (!response.headersSent) fail(new Error("the site ended the connection without an answer"));
  });
  outgoing.once("response", (incoming) => {
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

/** Gives the headers that travel on, as the flat list of names and values that they came in: order and case are kept. */
function endToEndHeaders(raw: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? "";
    const value = raw[index + 1] ?? "";
    if (!CONNECTION_HEADERS.has(name.toLowerCase()) && isSendable(name, value)) kept.push(name, value);
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
