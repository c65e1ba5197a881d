import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";

/** Site with one page that reports events to its server by POST requests to `/told`. */
export abstract class ReportingSite implements AsyncDisposable {
  readonly #server: Server;

  protected constructor(page: string) {
    this.#server = createServer(async (request, response) => {
      if (request.url !== "/told") {
        response.writeHead(200, { "content-type": "text/html" }).end(page);
        return;
      }
      this.receive(await text(request));
      response.end();
    });
    // A report would be lost if the server closed a kept-alive connection just when the page reuses it.
    this.#server.keepAliveTimeout = 0;
  }

  /** Receives a report of the page. */
  protected abstract receive(told: string): void;

  protected async listen(port = 0): Promise<this> {
    await once(this.#server.listen(port, "127.0.0.1"), "listening");
    return this;
  }

  /** `host:port`. */
  get host(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || !address) throw new Error("the site does not listen");
    return `127.0.0.1:${address.port}`;
  }

  get url(): string {
    return `http://${this.host}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
