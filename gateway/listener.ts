import { createServer as createNetServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { withFaultHandler } from "../src/platform/last-resort.ts";
import type { Log } from "../src/platform/log.ts";
import type { ConnectionCap } from "./connection-cap.ts";

/** A certificate and its key. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Options of a listening port. */
export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  /** Protocols offered under TLS (ALPN). */
  readonly protocols: readonly string[];
  readonly accept: ConnectionCap;
  /** Milliseconds without a byte after which a new connection is closed. Also the timeout of the TLS handshake. */
  readonly silenceMs: number;
  readonly log: Log;
  /** Serves a connection. `head` contains the bytes received so far, which can still be read from the socket. */
  onConnection(socket: Socket, head: Buffer): void;
}

/** One TCP port: accepts connections, terminates TLS, and passes connections on after their first bytes. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #secure: TlsServer | undefined;
  readonly #sockets = new Set<Socket>();
  /** Connections whose protocol is not yet known. */
  readonly #silent = new Set<Socket>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { tls, protocols, silenceMs, accept } = options;
    const secure = tls && createTlsServer({ ...tls, ALPNProtocols: [...protocols], handshakeTimeout: silenceMs });
    this.#secure = secure;
    secure?.on("secureConnection", (socket) => this.#await(socket));
    this.#server = createNetServer({ noDelay: true }, (socket) => {
      if (!accept(socket)) return;
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      if (secure) {
        secure.emit("connection", socket);
      } else {
        this.#await(socket);
      }
    });
  }

  /** Listens, and returns the port. The system chooses the port if the requested port is 0. */
  async start(): Promise<number> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, resolve);
    });
    const address = this.#server.address();
    return typeof address === "object" && address ? address.port : port;
  }

  /** Uses another certificate for new connections. */
  replaceCertificate(certificate: Certificate): void {
    this.#secure?.setSecureContext(certificate);
  }

  /** Refuses new connections, waits for open connections, and closes those still open after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#silent) {
      socket.destroy();
    }
    const deadline = setTimeout(() => {
      for (const socket of this.#sockets) {
        socket.destroy();
      }
    }, graceMs);
    await closed;
    clearTimeout(deadline);
  }

  /** Logs an uncaught error from the handler of a connection, and closes the connection. */
  #endFaulty(socket: Socket, error: unknown): void {
    this.#options.log.error({ err: error, client: socket.remoteAddress }, "failed to serve a connection");
    socket.destroy();
  }

  /**
   * Waits for the first bytes, which identify the protocol, puts them back into the socket, and calls `onConnection`.
   * Closes the connection if the bytes do not arrive in time.
   */
  #await(socket: Socket): void {
    this.#silent.add(socket);
    const end = (): void => {
      this.#silent.delete(socket);
      socket.destroy();
    };
    let head = Buffer.alloc(0);
    const read = (): void => {
      const part = socket.read() as Buffer | null;
      if (part === null) return;
      head = Buffer.concat([head, part]);
      if (isPartOfPreface(head)) return;
      this.#silent.delete(socket);
      socket.off("readable", read).off("error", end).off("timeout", end).setTimeout(0);
      withFaultHandler(
        (error) => this.#endFaulty(socket, error),
        () => {
          // `unshift` emits "readable" once more, so `read` must be removed first.
          socket.unshift(head);
          this.#options.onConnection(socket, head);
        },
      );
    };
    socket.on("error", end).once("close", end).on("readable", read).setTimeout(this.#options.silenceMs, end);
  }
}

// Start of the HTTP/2 connection preface (RFC 9113, section 3.4). No HTTP/1.1 method starts with these bytes.
const preface = Buffer.from("PRI ");

/** Returns whether a connection with these first bytes uses HTTP/2. */
export function isHttp2(head: Buffer): boolean {
  return head.subarray(0, preface.length).equals(preface);
}

/** Returns whether more bytes are needed to decide: `P` may become `PRI` or `POST`. */
function isPartOfPreface(head: Buffer): boolean {
  return head.length < preface.length && preface.subarray(0, head.length).equals(head);
}
