import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type { AddressInfo, Server } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach } from "vitest";

const open: { close(): unknown }[] = [];

afterEach(() => {
  for (const part of open.splice(0).reverse()) part.close();
});

/** Registers cleanup to run after the current test. */
export function closeAfterTest(close: () => unknown): void {
  open.push({ close });
}

/** Listens on loopback until the test ends. Returns the port. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closeAfterTest(() => server.close());
  return (server.address() as AddressInfo).port;
}

export interface Received {
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  readonly port: number;
  /** Received requests, oldest first. */
  readonly received: readonly Received[];
  /** Number of accepted connections. */
  connections(): number;
}

/** Receives webhooks on loopback, over TLS if `identity` is set. Responds with 200 by default. */
export async function startReceiver(
  answer: http.RequestListener = (_request, response) => void response.end("ok"),
  identity?: { readonly key: string; readonly cert: string },
): Promise<Receiver> {
  const received: Received[] = [];
  async function take(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    received.push({ headers: request.headers, body: await text(request) });
    answer(request, response);
  }
  const server = identity ? https.createServer(identity, take) : http.createServer(take);
  let connections = 0;
  server.on(identity ? "secureConnection" : "connection", () => {
    connections += 1;
  });
  const port = await listen(server);
  closeAfterTest(() => server.closeAllConnections());
  return { port, received, connections: () => connections };
}
