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

/** Handles a request over either HTTP version. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

// Requests that one HTTP/2 connection may have open. Each can hold a window of 64 KiB before it is read.
const maxConcurrentStreams = 250;
const maxCheckIntervalMs = 5_000;

/** Options of the shared port. */
export interface PortOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  readonly accept: ConnectionCap;
  readonly log: Log;
  readonly limits: TimeLimits;
  readonly bodies: SlowBodies;
  readonly onRequest: HttpHandler;
  /** Handles a WebSocket upgrade: writes the response or takes over its socket. */
  readonly onUpgrade: (request: IncomingMessage, response: ServerResponse, head: Buffer) => void;
  /** Responds to HTTP/1.1 input that is not a request. */
  readonly onClientError: (error: Error, socket: Socket) => void;
}

/** Use of an HTTP/2 connection. Times are in milliseconds of `performance.now()`. */
interface Http2Use {
  readonly socket: Socket;
  /** Number of open requests. */
  open: number;
  /** When the last request ended, or else when the connection was opened. */
  idleSince: number;
  /** When the unanswered ping was sent. Undefined if no ping is unanswered. */
  pingedAt?: number | undefined;
}

/** One port for HTTP/1.1 and HTTP/2. The first bytes of a connection select the version. */
export class SharedPort {
  readonly #options: PortOptions;
  readonly #listener: Listener;
  // Servers without a port of their own; the listener passes connections to them.
  readonly #http1: Server;
  readonly #http2: Http2Server;
  readonly #sessions = new Map<ServerHttp2Session, Http2Use>();
  /** Unfinished responses of HTTP/1.1 connections. */
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
      onConnection: (socket, head) => {
        if (isHttp2(head)) this.#startHttp2(socket);
        else this.#http1.emit("connection", socket);
      },
    });
  }

  /** Listens, and returns the port. The system chooses the port if the requested port is 0. */
  async start(): Promise<number> {
    const port = await this.#listener.start();
    // Node starts to check for slow headers at this event, which a server without a port does not emit.
    this.#http1.emit("listening");
    const { request, idle } = this.#options.limits;
    const every = Math.min(maxCheckIntervalMs, request / 4, idle / 4);
    this.#checks = setInterval(() => this.#check(), every).unref();
    return port;
  }

  replaceCertificate(certificate: Certificate): void {
    this.#listener.replaceCertificate(certificate);
  }

  /**
   * Refuses new connections, closes idle connections, lets requests finish, and closes all remaining connections after
   * `graceMs`.
   */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const closed = this.#listener.stop(graceMs);
    for (const [session, { socket }] of this.#sessions) {
      if (session.destroyed) socket.destroy();
      else session.close();
    }
    this.#http1.closeIdleConnections();
    await closed;
    clearInterval(this.#checks);
    this.#http1.close();
  }

  #createHttp1(): Server {
    const { limits, onUpgrade, onClientError } = this.#options;
    const options = {
      headersTimeout: limits.request,
      // `SlowBodies` limits the time of bodies, except for raw bodies and streams.
      requestTimeout: 0,
      connectionsCheckingInterval: maxCheckIntervalMs,
      keepAliveTimeout: limits.keepAlive,
      // `onRequest` responds to requests without Host.
      requireHostHeader: false,
      // Ignores upgrades to other protocols, such as `h2c`. Also ignores an upgrade that is pipelined behind an
      // unfinished request, whose response needs the socket (RFC 9110, section 7.8).
      shouldUpgradeCallback: ({ headers, socket }: IncomingMessage) =>
        headers.upgrade?.toLowerCase() === "websocket" && !this.#pending.get(socket)?.size,
    };
    const answer: HttpHandler = (request, response) => {
      const { socket } = request;
      const pending = this.#pending.get(socket) ?? new Set();
      this.#pending.set(socket, pending.add(response));
      response.once("close", () => {
        pending.delete(response);
        // A response that started before the stop lacks `connection: close`, so the connection is closed here.
        if (this.#stopping && pending.size === 0) socket.destroySoon();
      });
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
    // From here on HTTP/2 is handled as HTTP/1.1: Node's compatibility API has the same shape.
    const answer = (...exchange: [Http2ServerRequest, Http2ServerResponse]): void => {
      this.#answer(...(exchange as unknown as Parameters<HttpHandler>));
    };
    server.on("request", answer);
    server.on("checkExpectation", answer);
    server.on("checkContinue", (request, response) => {
      // Without this listener Node writes `100 Continue` itself, and throws if the client has already reset the stream.
      if (!response.stream.closed && !response.stream.destroyed) response.writeContinue();
      answer(request, response);
    });
    return server;
  }

  #startHttp2(socket: Socket): void {
    const watch = (session: ServerHttp2Session): void => {
      const use = { socket, open: 0, idleSince: performance.now() };
      this.#sessions.set(session, use);
      session.once("close", () => this.#sessions.delete(session));
      // Without a listener, an error of the session would end the process.
      session.on("error", () => session.destroy());
      session.on("stream", (stream) => {
        use.open += 1;
        stream.once("close", () => {
          use.open -= 1;
          use.idleSince = performance.now();
        });
      });
    };
    // Node emits "session" before `emit` returns. If ALPN selected another protocol, there is no session, and the
    // listener is removed.
    this.#http2.once("session", watch).emit("connection", socket);
    this.#http2.off("session", watch);
  }

  /**
   * Pings a closing connection, and destroys the connection if the ping stays unanswered. After GOAWAY, Node stops
   * reading at an invalid frame and does not notice that the client disconnects.
   */
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

  /**
   * Closes a connection after CONNECT. Node emits "close" only on the first pending response of such a connection, so
   * this function emits it on the others.
   */
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

  /** Ends requests and connections that exceed their time limits. */
  #check(): void {
    this.#options.bodies.sweep(({ socket }) => {
      const error = Object.assign(new Error("the body did not arrive in time"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
      this.#options.onClientError(error, socket);
    });
    const latest = performance.now() - this.#options.limits.idle;
    for (const [session, use] of this.#sessions) {
      const { open, idleSince, socket } = use;
      // If a TLS client disconnects during a write, Node destroys the session but neither emits "close" nor closes the
      // socket.
      if (session.destroyed) socket.destroy();
      if (open > 0 && session.closed && !session.destroyed) this.#probe(session, use);
      if (open === 0 && idleSince < latest) {
        // The client receives a GOAWAY. If the client keeps the session open, the next check destroys the session.
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
 * Keeps an error of a request from ending the process. Transports detect a disconnected client by "close", and may
 * remove their listeners just before Node emits "error".
 */
function ignoreErrors(request: IncomingMessage): void {
  request.on("error", () => undefined);
}

/** Creates an HTTP/1.1 response to an upgrade, for which Node creates none. The response closes the connection. */
function responseOn(socket: Socket, request: IncomingMessage): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => {
    // Discards bytes after the request, because unread bytes would hide the end of the connection.
    socket.resume().end();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  });
  return response;
}
