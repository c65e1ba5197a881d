import type { IncomingMessage } from "node:http";
import type { BlockList, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { fail, failFields } from "../../src/platform/errors.ts";
import type { ServedMethod, ServedService } from "../../src/registry.ts";
import { GatewayCall } from "../call.ts";
import { meet, type Peer } from "../front.ts";
import type { Gate } from "../policies/index.ts";
import type { Problems } from "../problems.ts";
import { rateLimitHeaders } from "../rate-limit-headers.ts";
import { endWithAnswer } from "../raw-answer.ts";
import { type PathTemplate, parseTemplate } from "../rest/template.ts";
import { serveStream } from "./stream.ts";

// A frame is at most as large as a REST body.
const MAX_PAYLOAD = 1024 * 1024;
const SUBPROTOCOL = "pilothouse.v1";
const PING_MS = 20_000;
const CLOSE_DONE = 1000;
const CLOSE_RESTART = 1012;

/** What the transport needs besides the registry. */
export interface WebSocketContext {
  readonly gate: Gate;
  readonly problems: Problems;
  readonly trustedProxies: BlockList;
  readonly makeRequestId: () => string;
  /** Says whether a Host header names this service. Absent: any does. */
  readonly isOwnHost: ((host: string) => boolean) | undefined;
  readonly corsOrigins: readonly string[];
}

interface Route {
  readonly served: ServedMethod;
  readonly template: PathTemplate;
}

/** Serves the bidirectional methods over WebSocket (RFC 6455), in the JSON of REST. */
export class WebSockets {
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_PAYLOAD,
    handleProtocols: (protocols) => (protocols.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  });
  readonly #routes: readonly Route[];
  readonly #context: WebSocketContext;
  readonly #pings: NodeJS.Timeout;
  #stopping = false;

  constructor(services: readonly ServedService[], context: WebSocketContext) {
    this.#context = context;
    this.#routes = services.flatMap(({ methods }) =>
      methods
        .filter((served) => served.rules.websocket !== "")
        .map((served) => ({ served, template: parseTemplate(served.rules.websocket) })),
    );
    this.#pings = setInterval(() => this.#ping(), PING_MS);
  }

  /** Answers an upgrade request: with a WebSocket, or with a problem document. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    const peer = meet(request, this.#context.trustedProxies, this.#context.makeRequestId);
    let call: GatewayCall | undefined;
    try {
      this.#checkOrigin(request);
      const { route, variables } = this.#find(request);
      call = new GatewayCall(route.served, { ...peer, header: headersOf(request) }, undefined);
      await this.#context.gate.admit(call);
      const admitted = call;
      this.#server.handleUpgrade(request, socket, head, (client) =>
        serveStream(client, admitted, variables, {
          ...this.#context,
          closeCode: () => (this.#stopping ? CLOSE_RESTART : CLOSE_DONE),
        }),
      );
    } catch (thrown) {
      refuse(socket, thrown, peer, call, this.#context);
    }
  }

  /** Takes no more clients. Their streams end by themselves once the gate has stopped, and close with "come again". */
  stop(): void {
    clearInterval(this.#pings);
    this.#stopping = true;
    this.#server.close();
  }

  /** Ends clients that have not answered the last ping, and pings the others. */
  #ping(): void {
    for (const client of this.#server.clients) {
      const { alive = true } = client as WebSocket & { alive?: boolean };
      if (!alive) {
        client.terminate();
        continue;
      }
      Object.assign(client, { alive: false });
      client.once("pong", () => Object.assign(client, { alive: true }));
      client.ping();
    }
  }

  /** A browser says which page it acts for: its own origin's and those of CORS_ORIGINS may. */
  #checkOrigin(request: IncomingMessage): void {
    const { origin, host = "" } = request.headers;
    if (this.#context.isOwnHost?.(host) === false) {
      throw failFields("bad-request", { Host: "is not a name of this service" });
    }
    const isOwn = origin !== undefined && URL.canParse(origin) && new URL(origin).host === host;
    if (origin !== undefined && !isOwn && !this.#context.corsOrigins.includes(origin)) {
      throw failFields("bad-request", { Origin: "is not one of CORS_ORIGINS" });
    }
  }

  #find(request: IncomingMessage): { route: Route; variables: Record<string, string> } {
    const path = request.url?.split("?", 1)[0] ?? "";
    for (const route of this.#routes) {
      if (route.template.pattern.test(path)) {
        const segments = path.split("/");
        const names = route.template.route.split("/");
        const variables = Object.fromEntries(
          names.flatMap((name, index) => (name.startsWith(":") ? [[name.slice(1), segments[index] ?? ""]] : [])),
        );
        return { route, variables };
      }
    }
    throw fail("not-found", {}, { detail: "no WebSocket has this path" });
  }
}

/** Browsers cannot set Authorization on a WebSocket: they offer the subprotocol `bearer.<token>` instead. */
function headersOf(request: IncomingMessage): (name: string) => string | undefined {
  const offered = request.headers["sec-websocket-protocol"]?.split(",").map((item) => item.trim()) ?? [];
  const bearer = offered.find((item) => item.startsWith("bearer."));
  return (name) => {
    const value = request.headers[name];
    if (name === "authorization" && value === undefined && bearer !== undefined) {
      return `Bearer ${bearer.slice("bearer.".length)}`;
    }
    return Array.isArray(value) ? value.join(", ") : value;
  };
}

function refuse(
  socket: Socket,
  thrown: unknown,
  peer: Peer,
  call: GatewayCall | undefined,
  { problems, gate }: WebSocketContext,
): void {
  const { status, headers, body } = problems.answer(thrown, peer.requestId);
  endWithAnswer(socket, {
    status,
    headers: {
      ...headers,
      ...rateLimitHeaders(gate.lookAtAddress(peer.clientAddress)),
      ...call?.responseHeaders,
      "x-request-id": peer.requestId,
    },
    body,
  });
}
