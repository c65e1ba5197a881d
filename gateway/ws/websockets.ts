import type { IncomingMessage, ServerResponse } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import { failFields } from "../../src/platform/errors.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import { GatewayCall } from "../call.ts";
import type { Cors } from "../cors.ts";
import { type Door, peerOf, refuse } from "../door.ts";
import type { HttpHandler } from "../listen.ts";
import { longestMessage } from "../message-size.ts";
import type { HeaderReader } from "../peer.ts";
import { matchPath, type PathTemplate, parseTemplate } from "../rest/template.ts";
import { serveStream } from "./stream.ts";

const subprotocol = "pilothouse.v1";
const pingMs = 20_000;
const closeDone = 1000;
const closeRestart = 1012;

interface Route {
  readonly served: ServedMethod;
  readonly template: PathTemplate;
  readonly server: WebSocketServer;
}

/** Serves the bidirectional methods over WebSocket (RFC 6455), in the JSON of REST. */
export class WebSockets {
  readonly #routes: readonly Route[];
  readonly #door: Door;
  readonly #cors: Cors;
  readonly #next: HttpHandler;
  readonly #pings: NodeJS.Timeout;
  #stopping = false;

  /** `next` answers requests for paths that are no WebSocket's. */
  constructor(services: readonly ServedService[], door: Door, cors: Cors, next: HttpHandler) {
    this.#door = door;
    this.#cors = cors;
    this.#next = next;
    this.#routes = services.flatMap(({ methods }) =>
      methods.filter(({ rules }) => rules.websocket !== "").map(routeOf),
    );
    this.#pings = setInterval(() => this.#ping(), pingMs);
  }

  /** Answers an upgrade request that has come through the front: with a WebSocket, or with a problem document. */
  async upgrade(request: IncomingMessage, response: ServerResponse, head: Buffer): Promise<void> {
    let call: GatewayCall | undefined;
    try {
      const found = this.#find(request.url?.split("?", 1)[0] ?? "");
      if (!found) {
        this.#next(request, response);
        return;
      }
      if (!this.#cors.permits(request)) throw failFields("bad-request", { Origin: "is not one of CORS_ORIGINS" });
      const { served, server, variables } = found;
      const peer = peerOf(request, this.#door);
      const admitted = new GatewayCall(served, { ...peer, header: headersWithBearer(request, peer.header) }, undefined);
      call = admitted;
      await this.#door.gate.admit(admitted);
      checkHandshake(request);
      const { socket } = request;
      response.detachSocket(socket);
      server.handleUpgrade(request, socket, head, (client) =>
        serveStream(client, admitted, variables, this.#door, () => (this.#stopping ? closeRestart : closeDone)),
      );
    } catch (thrown) {
      refuse(this.#door, request, response, thrown, call);
    }
  }

  /** Takes no more clients. Their streams end by themselves once the gate has stopped, and close with "come again". */
  stop(): void {
    clearInterval(this.#pings);
    this.#stopping = true;
    for (const { server } of this.#routes) {
      server.close();
    }
  }

  /** Ends clients that have not answered the last ping, and pings the others. */
  #ping(): void {
    for (const client of this.#routes.flatMap(({ server }) => [...server.clients])) {
      const { alive = true, isPaused } = client as WebSocket & { alive?: boolean };
      // The answer of a client that is held, because it is ahead of its method, is not read.
      if (isPaused) continue;
      if (!alive) {
        client.terminate();
        continue;
      }
      Object.assign(client, { alive: false });
      client.once("pong", () => Object.assign(client, { alive: true }));
      client.ping();
    }
  }

  #find(path: string): (Route & { variables: Record<string, string> }) | undefined {
    for (const route of this.#routes) {
      const variables = matchPath(route.template, path);
      if (variables) return { ...route, variables };
    }
    return undefined;
  }
}

function routeOf(served: ServedMethod): Route {
  const { websocket } = served.rules;
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: longestMessage(served),
    handleProtocols: (protocols) => (protocols.has(subprotocol) ? subprotocol : false),
  });
  return { served, template: parseTemplate(websocket), server };
}

/** Browsers cannot set Authorization on a WebSocket: they offer the subprotocol `bearer.<token>` instead. */
function headersWithBearer({ headers }: IncomingMessage, header: HeaderReader): HeaderReader {
  const offered = headers["sec-websocket-protocol"]?.split(",").map((item) => item.trim()) ?? [];
  const bearer = offered.find((item) => item.startsWith("bearer."));
  const authorization =
    headers.authorization ?? (bearer === undefined ? undefined : `Bearer ${bearer.slice("bearer.".length)}`);
  return (name) => (name === "authorization" ? authorization : header(name));
}

/** Refuses what `ws` would answer in its own words (RFC 6455, section 4.2.1). */
function checkHandshake({ method, headers }: IncomingMessage): void {
  const { "sec-websocket-key": key = "", "sec-websocket-version": version = "" } = headers;
  if (method !== "GET" || !/^[+/0-9A-Za-z]{22}==$/.test(key) || version !== "13") {
    throw failFields("bad-request", { "Sec-WebSocket-Version": "must be 13, with a key, in a GET request" });
  }
}
