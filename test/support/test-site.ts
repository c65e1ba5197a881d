import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

/** Website on loopback with two origins: its address and the name `localhost`. */
export abstract class TestSite {
  readonly #server: Server = createServer((request, response) => this.answer(request, response));

  protected abstract answer(request: IncomingMessage, response: ServerResponse): void;

  /** Listens on the given port, or on any. */
  async start(port = 0): Promise<this> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  /** `host:port` of the primary and the other origin. */
  get hosts(): readonly [string, string] {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the site does not listen");
    return [`127.0.0.1:${address.port}`, `localhost:${address.port}`];
  }

  /** `host:port` of the primary origin. */
  get host(): string {
    return this.hosts[0];
  }

  /** Stops listening and closes all connections. */
  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
