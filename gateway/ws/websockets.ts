import type { IncomingMessage, ServerResponse } from "node:http";
import type { Registry } from "prom-client";
import { type WebSocket, WebSocketServer } from "ws";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import { failFields } from "../../src/platform/errors.ts";
import type { Cors } from "../cors.ts";
import { GatewayCall } from "../gateway-call.ts";
import type { HttpHandler } from "../listen.ts";
import { longestFrame } from "../message-size.ts";
import { withBearer, withBearerInPath } from "../peer.ts";
import type { RequestReader } from "../rest/request-reader.ts";
import { matchPath, type PathTemplate, parseTemplate, tokenVariable } from "../rest/template.ts";
import { peerOf, refuse, type TransportParts } from "../transport-parts.ts";
import { compileFollowed, followedPath, serveFollowed } from "./followed-stream.ts";
import { cdpInput, connectInput } from "./relay-input.ts";
import { createRelayMetrics, type RelayMetrics } from "./relay-metrics.ts";
import { serveStream } from "./stream.ts";
import { openRelay } from "./stream-relay.ts";
import { boundMemory } from "./unfinished-messages.ts";

const subprotocol = "pilothouse.v1";
const pingMs = 20_000;
const closeDone = 1000;
const closeRestart = 1012;

interface Route {
  readonly served: ServedMethod;
  readonly template: PathTemplate;
  /** Template of the path followed by a bearer. Undefined if the method accepts no bearer in the path. */
  readonly byToken: PathTemplate | undefined;
  /** Reads the request of a server stream; undefined for a bidirectional method. */
  readonly readRequest: RequestReader | undefined;
  readonly server: WebSocketServer;
}

interface FoundRoute extends Route {
  readonly variables: Record<string, string>;
  /** Bearer in the path. */
  readonly token: string | undefined;
}

/** A WebSocket request whose call was admitted. */
interface Upgrade extends Pick<Route, "server"> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly head: Buffer;
  readonly call: GatewayCall;
}

interface WebSocketParts {
  readonly transport: TransportParts;
  readonly cors: Cors;
  readonly registry: Registry;
  /** Handles requests for paths without a WebSocket. */
  readonly next: HttpHandler;
}

/**
 * Serves bidirectional methods and followed server streams over WebSocket (RFC 6455). Messages are REST JSON or binary
 * protobuf; relaying methods pass text frames on unchanged.
 */
export class WebSockets {
  readonly #routes: readonly Route[];
  readonly #transport: TransportParts;
  readonly #cors: Cors;
  readonly #relayMetrics: RelayMetrics;
  readonly #next: HttpHandler;
  #pings: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(services: readonly ServedService[], { transport, cors, registry, next }: WebSocketParts) {
    this.#transport = transport;
    this.#cors = cors;
    this.#relayMetrics = createRelayMetrics(registry);
    this.#next = next;
    this.#routes = services.flatMap(({ methods }) => methods.filter((served) => pathOf(served) !== "").map(routeOf));
  }

  /** Starts to ping the clients. */
  start(): void {
    this.#pings = setInterval(() => this.#ping(), pingMs).unref();
  }

  /**
   * Handles an upgrade request that the request filter has admitted: accepts the WebSocket, passes the request to
   * `next`, or sends a problem document.
   */
  async upgrade(request: IncomingMessage, response: ServerResponse, head: Buffer): Promise<void> {
    let call: GatewayCall | undefined;
    try {
      const found = this.#find(request.url?.split("?", 1)[0] ?? "");
      if (!found) {
        this.#next(request, response);
        return;
      }
      if (!this.#cors.permits(request))
        throw failFields("bad-request", {
          Origin: "is not an allowed origin: the operator can add it to CORS_ORIGINS",
        });
      const { served, variables, readRequest } = found;
      const { keyInAddress, relay } = served.rules;
      const query = new URLSearchParams(request.url?.split("?").slice(1).join("?"));
      const token = found.token ?? (keyInAddress ? (query.get(tokenVariable) ?? undefined) : undefined);
      const peer = withBearerInPath(withBearer(peerOf(request, this.#transport), bearerOf(request)), token);
      const admitted = new GatewayCall(served, peer, undefined);
      call = admitted;
      Object.assign(request, { route: found.template.route, call });
      await this.#transport.dispatcher.admit(admitted);
      checkHandshake(request);
      const closeCode = (): number => (this.#stopping ? closeRestart : closeDone);
      if (readRequest) {
        const followed = readRequest({ variables, query: listQuery(query), body: undefined });
        this.#accept({ request, response, head, ...found, call: admitted }, (client) =>
          serveFollowed(client, admitted, followed, this.#transport, closeCode),
        );
      } else if (relay) {
        if (keyInAddress) refusePlaywright(request);
        const { session_id: sessionId = "" } = variables;
        const input = keyInAddress ? connectInput(query) : cdpInput(sessionId);
        const relayOptions = {
          call: admitted,
          input,
          transport: this.#transport,
          metrics: this.#relayMetrics,
          closeCode,
        };
        this.#accept(
          { request, response, head, ...found, call: admitted },
          await openRelay(relayOptions, request.socket),
        );
      } else {
        this.#accept({ request, response, head, ...found, call: admitted }, (client) =>
          serveStream(client, admitted, variables, this.#transport, closeCode),
        );
      }
    } catch (thrown) {
      refuse(this.#transport, request, response, thrown, call);
    }
  }

  /** Refuses new clients. Open streams end when the dispatcher stops, and close with code 1012 (service restart). */
  stop(): void {
    clearInterval(this.#pings);
    this.#stopping = true;
    for (const { server } of this.#routes) {
      server.close();
    }
  }

  /** Accepts a WebSocket. `serve` returns a function that reads the bytes of its waiting messages. */
  #accept({ request, response, head, server, call }: Upgrade, serve: (client: WebSocket) => () => number): void {
    const { socket } = request;
    response.detachSocket(socket);
    const { "x-session-id": sessionId } = call.responseHeaders;
    const addHeader = (headers: string[]): void => {
      if (sessionId !== undefined) headers.push(`X-Session-Id: ${sessionId}`);
    };
    server.once("headers", addHeader);
    server.handleUpgrade(request, socket, head, (client) => {
      // `serve` adds its listeners, which queue messages, before those of `boundMemory`.
      boundMemory({ client, socket, call, waiting: serve(client), buffers: this.#transport.buffers });
    });
    // `handleUpgrade` writes the headers before it returns, and none if the client has disconnected.
    server.off("headers", addHeader);
  }

  /** Terminates clients that did not answer the last ping, and pings the others. */
  #ping(): void {
    for (const client of this.#routes.flatMap(({ server }) => [...server.clients])) {
      const { alive = true, isPaused } = client as WebSocket & { alive?: boolean };
      // While the queue of a client is full, the client is paused and its pong is not read.
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

  #find(path: string): FoundRoute | undefined {
    for (const route of this.#routes) {
      const variables = matchPath(route.template, path);
      if (variables) return { ...route, variables, token: undefined };
      const { [tokenVariable]: token, ...others } = (route.byToken && matchPath(route.byToken, path)) ?? {};
      if (token !== undefined) return { ...route, variables: others, token };
    }
    return undefined;
  }
}

const pathOf = (served: ServedMethod): string => served.rules.websocket || followedPath(served);

/** Returns the values of each query parameter, by name. */
const listQuery = (query: URLSearchParams): Record<string, string[]> =>
  Object.fromEntries([...new Set(query.keys())].map((name) => [name, query.getAll(name)]));

function routeOf(served: ServedMethod): Route {
  const { sessionBearer, keyInAddress, relay } = served.rules;
  const websocket = pathOf(served);
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: longestFrame(served),
    // One message per turn of the event loop, so that a burst of one client does not block others.
    allowSynchronousEvents: false,
    handleProtocols: (protocols) => (protocols.has(subprotocol) ? subprotocol : false),
  });
  const byToken =
    (sessionBearer || keyInAddress) && relay ? parseTemplate(`${websocket}/{${tokenVariable}}`) : undefined;
  const readRequest = served.kind === "server_streaming" ? compileFollowed(served) : undefined;
  return { served, template: parseTemplate(websocket), byToken, readRequest, server };
}

/** Returns the bearer of the subprotocol `bearer.<token>`, since browsers cannot set Authorization on a WebSocket. */
function bearerOf({ headers }: IncomingMessage): string | undefined {
  const offered = headers["sec-websocket-protocol"]?.split(",").map((item) => item.trim()) ?? [];
  return offered.find((item) => item.startsWith("bearer."))?.slice("bearer.".length);
}

/** Refuses Playwright's own protocol, which requires client and server of the same version. */
function refusePlaywright({ headers }: IncomingMessage): void {
  if (headers["x-playwright-browser"] === undefined) return;
  throw failFields("bad-request", {
    "X-Playwright-Browser":
      "Playwright's own protocol is not supported: use chromium.connectOverCDP(url), not connect(url)",
  });
}

/**
 * Throws `bad-request` with all faults of an invalid handshake, because `ws` would send a text of its own (RFC 6455,
 * section 4.2.1).
 */
function checkHandshake({ method, headers }: IncomingMessage): void {
  const { "sec-websocket-key": key = "", "sec-websocket-version": version = "" } = headers;
  const faults = {
    ...(method !== "GET" && { method: `expected GET, got ${method}` }),
    ...(version !== "13" && { "Sec-WebSocket-Version": `expected 13, got ${version || "none"}` }),
    ...(!/^[+/0-9A-Za-z]{22}==$/.test(key) && { "Sec-WebSocket-Key": "expected 16 bytes in base64" }),
  };
  if (Object.keys(faults).length > 0) throw failFields("bad-request", faults);
}
