import { createServer as createNetServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { ownFaults } from "../src/platform/last-resort.ts";
import type { Log } from "../src/platform/log.ts";
import type { ConnectionCap } from "./connection-cap.ts";

/** A certificate with its key. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** What a port needs to take connections. */
export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: Certificate | undefined;
  /** Protocols that are offered under TLS (ALPN). */
  readonly protocols: readonly string[];
  readonly takes: ConnectionCap;
  /** A client that says nothing for so many milliseconds is cut off. */
  readonly silenceMs: number;
  readonly log: Log;
  /** Serves a connection. `head` is what it has sent so far, which can still be read from it. */
  onConnection(socket: Socket, head: Buffer): void;
}

/** One TCP port: takes connections, ends their TLS, and hands them on as soon as they have said something. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Connections whose protocol is not known yet. */
  readonly #silent = new Set<Socket>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { tls, protocols, silenceMs, takes } = options;
    const secure = tls && createTlsServer({ ...tls, ALPNProtocols: [...protocols], handshakeTimeout: silenceMs });
    secure?.on("secureConnection", (socket) => this.#await(socket));
    this.#server = createNetServer({ noDelay: true }, (socket) => {
      if (!takes(socket)) return;
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      if (secure) {
        secure.emit("connection", socket);
      } else {
        this.#await(socket);
      }
    });
  }

  /** Listens, and returns the port (which differs from the asked one when that was 0). */
  async start(): Promise<number> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, resolve);
    });
    const address = this.#server.address();
    return typeof address === "object" && address ? address.port : port;
  }

  /** Takes no new connection, waits for those that are open, and ends what is left after `graceMs`. */
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

  /** Ends a connection because of an error that no handler caught. */
  #endFaulty(socket: Socket, error: unknown): void {
    this.#options.log.error({ err: error, client: socket.remoteAddress }, "failed to serve a connection");
    socket.destroy();
  }

  /** Waits for the bytes that tell a connection's protocol, and puts them back for the server that reads it. */
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
      ownFaults(
        (error) => this.#endFaulty(socket, error),
        () => {
          // Emits "readable" once more, which must not reach `read`.
          socket.unshift(head);
          this.#options.onConnection(socket, head);
        },
      );
    };
    socket.on("error", end).once("close", end).on("readable", read).setTimeout(this.#options.silenceMs, end);
  }
}

// The HTTP/2 connection preface begins with these bytes (RFC 9113, section 3.4); no HTTP/1.1 method does.
const preface = Buffer.from("PRI ");

/** Says whether a connection speaks HTTP/2, by the first bytes that it has sent. */
export function isHttp2(head: Buffer): boolean {
  return head.subarray(0, preface.length).equals(preface);
}

/** Returns whether more bytes decide: `P` may become `PRI` or `POST`. */
function isPartOfPreface(head: Buffer): boolean {
  return head.length < preface.length && preface.subarray(0, head.length).equals(head);
}
