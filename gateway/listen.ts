import { createServer as createHttpServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import type { Socket } from "node:net";
import type { Log } from "../src/platform/log.ts";
import type { ConnectionCap } from "./connection-cap.ts";
import { type Certificate, isHttp2, Listener } from "./listener.ts";
import { lingerMs, type SlowBodies } from "./slow-bodies.ts";
import type { TimeLimits } from "./time-limits.ts";

/** Answers a request over either version of HTTP. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

// Requests that one HTTP/2 connection may have open. Each can hold a window of 64 KiB before it is read.
const maxConcurrentStreams = 250;
const mostChecksEveryMs = 5_000;

/** What the port needs to serve. */
export interface PortOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  readonly takes: ConnectionCap;
  readonly log: Log;
  readonly limits: TimeLimits;
  readonly bodies: SlowBodies;
  readonly onRequest: HttpHandler;
  /** Answers a request for a WebSocket, by its response or by taking the socket from it. */
  readonly onUpgrade: (request: IncomingMessage, response: ServerResponse, head: Buffer) => void;
  /** Answers what came over HTTP/1.1 and is no request. */
  readonly onClientError: (error: Error, socket: Socket) => void;
}

/** An HTTP/2 connection: how many requests are open on it, and since when none is. */
interface Http2Use {
  open: number;
  idleSince: number;
  /** When a ping was sent that has no answer. */
  pingedAt?: number | undefined;
}

/** One port for HTTP/1.1 and HTTP/2, told apart by a connection's first bytes. */
export class SharedPort {
  readonly #options: PortOptions;
  readonly #listener: Listener;
  // Neither listens itself: both are handed their connections.
  readonly #http1: Server;
  readonly #http2: Http2Server;
  readonly #sessions = new Map<ServerHttp2Session, Http2Use>();
  /** Responses of HTTP/1.1 connections that are not whole yet. */
  readonly #pending = new WeakMap<Socket, Set<ServerResponse>>();
  #checks: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: PortOptions) {
    this.#options = options;
    const { limits } = options;
    this.#http1 = this.#createHttp1();
    this.#http2 = this.#createHttp2();
    this.#listener = new Listener({
      ...options,
      protocols: ["h2", "http/1.1"],
      silenceMs: limits.silence,
      onConnection: (socket, head) => (isHttp2(head) ? this.#http2 : this.#http1).emit("connection", socket),
    });
  }

  /** Listens, and returns the port (which differs from the asked one when that was 0). */
  async start(): Promise<number> {
    const port = await this.#listener.start();
    // Node starts its checks on slow headers when a server listens.
    this.#http1.emit("listening");
    const { request, idle } = this.#options.limits;
    const every = Math.min(mostChecksEveryMs, request / 4, idle / 4);
    this.#checks = setInterval(() => this.#check(), every).unref();
    return port;
  }

  /** Takes no new connection, tells clients to go, and ends what is left after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#checks);
    const closed = this.#listener.stop(graceMs);
    for (const session of this.#sessions.keys()) {
      session.close();
    }
    this.#http1.closeIdleConnections();
    await closed;
    this.#http1.close();
  }

  #createHttp1(): Server {
    const { limits, onUpgrade, onClientError } = this.#options;
    const options = {
      headersTimeout: limits.request,
      // Bodies have a limit of ours, which raw ones are free of.
      requestTimeout: 0,
      connectionsCheckingInterval: mostChecksEveryMs,
      keepAliveTimeout: limits.keepAlive,
      // The front answers a request without Host.
      requireHostHeader: false,
      // Clients offer other protocols to see whether we speak them (`Upgrade: h2c`): then they are answered as they asked.
      // A request that is pipelined behind another cannot have the socket, so its Upgrade is ignored (RFC 9110, 7.8).
      shouldUpgradeCallback: ({ headers, socket }: IncomingMessage) =>
        headers.upgrade?.toLowerCase() === "websocket" && !this.#pending.get(socket)?.size,
    };
    const answer: HttpHandler = (request, response) => {
      // A request whose client has left has no socket any more.
      const { socket } = request;
      const pending = this.#pending.get(socket) ?? new Set();
      this.#pending.set(socket, pending.add(response));
      response.once("close", () => pending.delete(response));
      this.#answer(request, response);
    };
    const server = createHttpServer(options, answer);
    server.on("checkExpectation", answer);
    server.on("clientError", onClientError);
    server.on("connect", (_request: IncomingMessage, socket: Socket) => this.#endConnection(socket));
    server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      ignoreErrors(request);
      onUpgrade(request, responseOn(socket, request), head);
    });
    return server;
  }

  #createHttp2(): Http2Server {
    const server = createHttp2Server({ settings: { maxConcurrentStreams } });
    // The boundary where HTTP/2 becomes HTTP/1.1 for everything behind: Node's compatibility API has the same shape.
    const answer = (...exchange: [Http2ServerRequest, Http2ServerResponse]): void => {
      this.#answer(...(exchange as unknown as Parameters<HttpHandler>));
    };
    server.on("request", answer);
    server.on("checkExpectation", answer);
    server.on("checkContinue", (request, response) => {
      // Without this listener Node writes `100 Continue` itself, and throws if the client has reset the stream already.
      if (!response.stream.closed && !response.stream.destroyed) response.writeContinue();
      answer(request, response);
    });
    server.on("session", (session) => {
      const use = { open: 0, idleSince: performance.now() };
      this.#sessions.set(session, use);
      session.once("close", () => this.#sessions.delete(session));
      // Errors of a session close it; without a listener they would end the process.
      session.on("error", () => session.destroy());
      session.on("stream", (stream) => {
        use.open += 1;
        stream.once("close", () => {
          use.open -= 1;
          use.idleSince = performance.now();
        });
      });
    });
    return server;
  }

  /** Ends a closing connection whose client answers no ping: bytes that are no frame, after GOAWAY, stop Node from reading. */
  #probe(session: ServerHttp2Session, use: Http2Use): void {
    if (use.pingedAt === undefined) {
      use.pingedAt = performance.now();
      session.ping((error) => {
        if (!error) use.pingedAt = undefined;
      });
    } else if (performance.now() - use.pingedAt > this.#options.limits.silence) {
      session.destroy();
    }
  }

  /** Ends a connection after CONNECT. Node no longer tracks the connection, so "close" reaches only its first response. */
  #endConnection(socket: Socket): void {
    socket.on("error", () => undefined);
    socket.once("close", () => {
      for (const response of this.#pending.get(socket) ?? []) {
        response.req.destroy();
        response.emit("close");
      }
    });
    socket.destroy();
  }

  #answer(...[request, response]: Parameters<HttpHandler>): void {
    ignoreErrors(request);
    if (this.#stopping && request.httpVersionMajor === 1) response.setHeader("connection", "close");
    this.#options.bodies.watch(request, response);
    this.#options.onRequest(request, response);
  }

  /** Ends what takes too long. */
  #check(): void {
    this.#options.bodies.sweep(({ socket }) => {
      const error = Object.assign(new Error("the body has not come"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
      this.#options.onClientError(error, socket);
    });
    const latest = performance.now() - this.#options.limits.idle;
    for (const [session, use] of this.#sessions) {
      const { open, idleSince } = use;
      if (open > 0 && session.closed && !session.destroyed) this.#probe(session, use);
      if (open === 0 && idleSince < latest) {
        // A client that is there gets a GOAWAY; what does not read it is gone at the next look.
        if (session.closed) {
          session.destroy();
        } else {
          session.close();
        }
      }
    }
  }
}

/**
 * Keeps an error of a request from ending the process. Doors see the end of their client by "close", and take their own
 * listeners off while Node may be about to emit "error".
 */
function ignoreErrors(request: IncomingMessage): void {
  request.on("error", () => undefined);
}

/** An HTTP/1.1 answer to a request that Node has made no response object for. It ends the connection. */
function responseOn(socket: Socket, request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => {
    // Discards what the client has sent after its request: unread, it would hide the end of the connection.
    socket.resume().end();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
  return response;
}
