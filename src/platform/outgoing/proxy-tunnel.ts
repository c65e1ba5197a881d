import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { formatTarget, type HostPort, normaliseHost } from "./address-rules.ts";
import { FetchFault } from "./fetch-fault.ts";
import type { OutgoingOptions } from "./outgoing-options.ts";

/**
 * Opens a connection to a target through an HTTP proxy (CONNECT; RFC 9110, section 9.3.6). The proxy resolves the name.
 * Rejects with a FetchFault.
 */
export function openTunnel(
  proxy: URL,
  ca: OutgoingOptions["ca"],
  target: HostPort,
  timeoutMs: number,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const authority = formatTarget(target);
  const request = (proxy.protocol === "https:" ? https : http).request({
    host: normaliseHost(proxy.hostname),
    port: proxy.port,
    method: "CONNECT",
    path: authority,
    headers: { host: authority, ...loginOf(proxy) },
    agent: false,
    timeout: timeoutMs,
    ...(ca !== undefined && { ca: [ca].flat() }),
  });
  const refuse = (reason: string, cause?: unknown): void =>
    reject(new FetchFault("unreachable", `cannot be reached: the outgoing proxy ${reason}`, cause));
  // Node emits this event for each final response to CONNECT.
  request.on("connect", ({ statusCode = 0 }, socket: Socket, head) => {
    // The target sends nothing before the client's TLS hello, so data after the headers is an error.
    if (statusCode >= 200 && statusCode < 300 && head.length === 0) {
      socket.setTimeout(0);
      resolve(socket);
    } else {
      socket.destroy();
      refuse(`answered ${statusCode}`);
    }
  });
  request.on("timeout", () => request.destroy(new Error("timeout")));
  request.on("error", (error) => refuse(`failed (${error.message})`, error));
  request.end();
  return promise;
}

/** Returns the credentials of the proxy's URL as a header. */
function loginOf({ username, password }: URL): Record<string, string> {
  if (username === "") return {};
  const login = [username, password].map(decodeURIComponent).join(":");
  return { "proxy-authorization": `Basic ${Buffer.from(login).toString("base64")}` };
}
