import type { IncomingMessage, ServerResponse } from "node:http";
import { type GeneratedPage, generatePage } from "./generated-page.ts";
import { TestSite } from "./test-site.ts";

/** Serves generated pages by seed, with frames of two origins. */
export class GeneratedSite extends TestSite {
  page(seed: number): GeneratedPage {
    return generatePage(seed, `http://${this.hosts[1]}`);
  }

  url(seed: number): string {
    return `http://${this.host}/page/${seed}`;
  }

  /** Returns the URL of a document written by a test. */
  written(html: string): string {
    return `http://${this.host}/html/${encodeURIComponent(html)}`;
  }

  protected answer({ url = "/" }: IncomingMessage, response: ServerResponse): void {
    const [, kind = "", seed = ""] = url.split("/");
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    if (kind === "html") {
      response.end(decodeURIComponent(seed));
      return;
    }
    const page = this.page(Number(seed));
    response.end(kind === "page" ? page.html : (page.frames.get(url) ?? ""));
  }
}
