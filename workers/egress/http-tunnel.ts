import http from "node:http";
import type { Socket } from "node:net";
import { formatTarget, type HostPort } from "../../src/platform/outgoing/address-rules.ts";
import { connectionClosed, loginRefused, tunnelRefused } from "./proxy-failure.ts";

/** Requests a tunnel from an HTTP proxy with CONNECT (RFC 9110, section 9.3.6). */
export function openHttpTunnel(socket: Socket, target: HostPort, authorization: string | undefined): Promise<void> {
  const authority = formatTarget(target);
  return new Promise((resolve, reject) => {
    const request = http.request({
      method: "CONNECT",
      path: authority,
      headers: { host: authority, ...(authorization !== undefined && { "proxy-authorization": authorization }) },
      setHost: false,
      insecureHTTPParser: true,
      createConnection: () => socket,
    });
    request.once("connect", ({ statusCode = 0 }, _socket, head) => {
      // The first bytes of the site can arrive together with the proxy's response.
      if (head.length > 0) socket.unshift(head);
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(statusCode === 407 ? loginRefused() : tunnelRefused(authority, `HTTP ${statusCode}`));
    });
    request.once("error", (error) => reject(connectionClosed(error)));
    request.end();
  });
}
