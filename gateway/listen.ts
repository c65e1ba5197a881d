import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from "node:http2";
import { createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";

/** Answers a request over either version of HTTP. */
export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void;

// The HTTP/2 connection preface begins with these bytes (RFC 9113, section 3.4); no HTTP/1.1 method does.
const PREFACE = Buffer.from("PRI ");
// A client that connects and says nothing is cut off after this.
const SILENT_MS = 10_000;
// A stream may send this much before the client's window is opened further: uploads are 1 MiB at most.
const MAX_CONCURRENT_STREAMS = 250;

/** What a port needs to serve. */
export interface PortOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly onRequest: HttpHandler;
  readonly onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
  /** Answers what came over HTTP/1.1 and is no request. */
  readonly onClientError: (error: Error, socket: Socket) => void;
}

/** One port for HTTP/1.1 and HTTP/2, told apart by a connection's first bytes, or by ALPN under TLS. */
export class SharedPort {
  /** Serves HTTP/1.1; never listens itself. Fastify and WebSockets are attached to it. */
  readonly http1: Server;
  readonly #http2: Http2Server | Http2SecureServer;
  readonly #listener: NetServer | Http2SecureServer;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #sockets = new Set<Socket>();
  /** Connections that have not said yet what they speak. */
  readonly #silent = new Set<Socket>();
  readonly #options: PortOptions;
  #stopping = false;

  constructor(options: PortOptions) {
    this.#options = options;
    this.http1 = createHttpServer({ requestTimeout: 60_000 }, (request, response) => this.#answer(request, response));
    this.http1.on("clientError", (error: Error, socket: Socket) => options.onClientError(error, socket));
    this.http1.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) =>
      options.onUpgrade(request, socket, head),
    );
    const settings = { settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS } };
    if (options.tls) {
      const secure = createSecureServer({ ...options.tls, allowHTTP1: true, ...settings });
      secure.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) =>
        options.onUpgrade(request, socket, head),
      );
      this.#http2 = secure;
      this.#listener = secure;
      secure.on("secureConnection", (socket) => this.#track(socket));
    } else {
      this.#http2 = createHttp2Server(settings);
      this.#listener = createNetServer({ noDelay: true }, (socket) => this.#sniff(socket));
    }
    // The boundary where HTTP/2 becomes HTTP/1.1 for everything behind: Node's compatibility API has the same shape.
    const answer = (...exchange: [Http2ServerRequest, Http2ServerResponse]): void =>
      this.#answer(...(exchange as unknown as Parameters<HttpHandler>));
    this.#http2.on("request", answer);
    this.#http2.on("session", (session) => {
      this.#sessions.add(session);
      session.once("close", () => this.#sessions.delete(session));
      // Errors of a session close it; without a listener they would end the process.
      session.on("error", () => session.destroy());
    });
  }

  /** Listens, and returns the port (which differs from the asked one when that was 0). */
  async start(): Promise<number> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#listener.once("error", reject);
      this.#listener.listen(port, host, resolve);
    });
    // Node starts its checks on slow requests when a server listens; ours is handed its connections.
    this.http1.emit("listening");
    const address = this.#listener.address();
    return typeof address === "object" && address ? address.port : port;
  }

  /** Takes no new connection, tells clients to go, and ends what is left after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    for (const session of this.#sessions) {
      session.close();
    }
    for (const socket of this.#silent) {
      socket.destroy();
    }
    this.http1.closeIdleConnections();
    const deadline = setTimeout(() => {
      for (const socket of this.#sockets) {
        socket.destroy();
      }
    }, graceMs);
    await closed;
    clearTimeout(deadline);
    this.http1.close();
  }

  #answer(...[request, response]: Parameters<HttpHandler>): void {
    if (this.#stopping && request.httpVersionMajor === 1) {
      response.setHeader("connection", "close");
    }
    this.#options.onRequest(request, response);
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #sniff(socket: Socket): void {
    this.#track(socket);
    this.#silent.add(socket);
    socket.once("close", () => this.#silent.delete(socket));
    const onError = (): void => {
      socket.destroy();
    };
    socket.on("error", onError);
    socket.setTimeout(SILENT_MS, onError);
    const read = (): void => {
      const head = socket.read() as Buffer | null;
      if (head === null) {
        return;
      }
      const length = Math.min(head.length, PREFACE.length);
      const isPreface = head.compare(PREFACE, 0, length, 0, length) === 0;
      socket.unshift(head);
      if (isPreface && head.length < PREFACE.length) {
        // P alone may still become POST. The timeout ends a client that leaves it at that.
        socket.once("readable", read);
        return;
      }
      this.#silent.delete(socket);
      socket.off("error", onError);
      socket.setTimeout(0);
      socket.removeListener("timeout", onError);
      (isPreface ? this.#http2 : this.http1).emit("connection", socket);
    };
    socket.once("readable", read);
  }
}
