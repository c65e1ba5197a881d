import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Registry } from "prom-client";

/** What the internal port tells. */
export interface InternalServerOptions {
  readonly port: number;
  readonly registry: Registry;
  /** Whether the worker takes sessions. */
  isReady(): boolean;
}

/** Health and metrics of a worker, for its operator. */
export class InternalServer {
  readonly #options: InternalServerOptions;
  readonly #server: Server;

  constructor(options: InternalServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Begins to listen on all addresses. */
  async start(): Promise<void> {
    this.#server.listen(this.#options.port);
    await once(this.#server, "listening");
  }

  /** Ends every connection. */
  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { registry, isReady } = this.#options;
    switch (request.url) {
      case "/healthz":
        return void response.writeHead(200, { "content-type": "text/plain" }).end("ok\n");
      case "/readyz": {
        const ready = isReady();
        const status = ready ? 200 : 503;
        return void response.writeHead(status, { "content-type": "text/plain" }).end(ready ? "ready\n" : "not ready\n");
      }
      case "/metrics":
        return void response.writeHead(200, { "content-type": registry.contentType }).end(await registry.metrics());
      default:
        return void response.writeHead(404).end();
    }
  }
}
