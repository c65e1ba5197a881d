import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type GeneratedPage, generatePage } from "./generated-page.ts";

/** Serves generated pages by their seed, with frames of its own and of another origin. */
export class GeneratedSite {
  readonly #server: Server = createServer(({ url = "/" }, response) => {
    const [, kind = "", seed = ""] = url.split("/");
    if (kind === "html") {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(decodeURIComponent(seed));
      return;
    }
    const page = this.page(Number(seed));
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(kind === "page" ? page.html : (page.frames.get(url) ?? ""));
  });

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  /** `host:port` of its own origin, and of the other one. */
  get hosts(): readonly [string, string] {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the site does not listen");
    return [`127.0.0.1:${address.port}`, `localhost:${address.port}`];
  }

  page(seed: number): GeneratedPage {
    return generatePage(seed, `http://${this.hosts[1]}`);
  }

  url(seed: number): string {
    return `http://${this.hosts[0]}/page/${seed}`;
  }

  /** Where a document is that a test has written. */
  written(html: string): string {
    return `http://${this.hosts[0]}/html/${encodeURIComponent(html)}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }
}
