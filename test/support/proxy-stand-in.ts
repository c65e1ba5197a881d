import { once } from "node:events";
import http from "node:http";
import { connect, type Socket } from "node:net";

/** HTTP proxy that records requests and connects all of them to one site on loopback without resolving names. */
export class ProxyStandIn {
  /** `CONNECT host:port` and `GET http://...` of every request, in order. */
  readonly asked: string[] = [];
  /** Required `Proxy-Authorization`. Requests without it are answered with 407. */
  wanted: string | undefined;
  readonly #sitePort: number;
  readonly #sockets = new Set<Socket>();
  readonly #server = http.createServer((request, response) => this.#forward(request, response));

  constructor(sitePort: number) {
    this.#sitePort = sitePort;
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket)).on("error", () => undefined);
    });
    this.#server.on("connect", (request, socket: Socket, head) => this.#tunnel(request, socket, head));
  }

  /** Listens on a loopback address and returns the port. */
  async start(address = "127.0.0.1", port = 0): Promise<number> {
    this.#server.listen(port, address);
    await once(this.#server, "listening");
    const bound = this.#server.address();
    if (bound === null || typeof bound === "string") throw new Error("the stand-in does not listen");
    return bound.port;
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #isKnown(request: http.IncomingMessage): boolean {
    return this.wanted === undefined || request.headers["proxy-authorization"] === this.wanted;
  }

  #forward(request: http.IncomingMessage, response: http.ServerResponse): void {
    this.asked.push(`${request.method} ${request.url}`);
    if (!this.#isKnown(request)) {
      response.writeHead(407, { "proxy-authenticate": 'Basic realm="stand-in"' }).end("who are you?");
      return;
    }
    response.writeHead(200, { "access-control-allow-origin": "*" }).end("through the stand-in");
  }

  #tunnel(request: http.IncomingMessage, socket: Socket, head: Buffer): void {
    this.asked.push(`CONNECT ${request.url}`);
    if (!this.#isKnown(request)) {
      socket.end("HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const site = connect(this.#sitePort, "127.0.0.1");
    site.on("error", () => socket.destroy()).once("close", () => socket.destroy());
    socket.once("close", () => site.destroy());
    socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    site.write(head);
    socket.pipe(site).pipe(socket);
  }
}
