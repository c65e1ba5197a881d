import { once } from "node:events";
import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { makeSelfSigned } from "./self-signed.ts";

/** Browser flags for visits to the site, whose certificate is self-signed. */
export const vendorSiteFlags = ["--ignore-certificate-errors"];

/** Page of the site. URLs of other hosts, `https://host/...`, lead to this machine. */
export interface VendorPage {
  readonly html: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Content of each vendor's frame: a button that reports a passed check to the embedding page. */
const frame = `<!DOCTYPE html><body style="margin:0"><button id=pass style="width:100%;height:60px"
  onclick="parent.postMessage('passed', '*')">I am human</button>`;

/**
 * Pages on loopback with the vendors' servers that they embed. All vendor names resolve to one TLS server, because
 * browsers know some of them as https only.
 */
export class VendorSite {
  readonly #pages: ReadonlyMap<string, VendorPage>;
  readonly #plain: Server;
  readonly #vendors: ReturnType<typeof createServer>;

  constructor(pages: ReadonlyMap<string, VendorPage>) {
    this.#pages = pages;
    this.#plain = createPlain((request, response) => this.#answer(request, response));
    this.#vendors = createServer(makeSelfSigned(), (_request, response) => {
      response.writeHead(200, { "content-type": "text/html", "access-control-allow-origin": "*" }).end(frame);
    });
  }

  async start(): Promise<this> {
    for (const server of [this.#plain, this.#vendors]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    return this;
  }

  /** Hosts that a worker's pages must be allowed to reach: the site, and any host on the vendors' port. */
  allow(hosts: readonly string[]): string[] {
    return [`127.0.0.1:${portOf(this.#plain)}`, ...hosts.map((host) => `${host}:${portOf(this.#vendors)}`)];
  }

  url(path: string): string {
    return `http://127.0.0.1:${portOf(this.#plain)}${path}`;
  }

  /** Stops listening and closes all connections. */
  async stop(): Promise<void> {
    for (const server of [this.#plain, this.#vendors]) {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    const isCleared = request.headers.cookie?.includes("cleared=1") === true;
    const page = isCleared ? cleared : this.#pages.get(pathname);
    const headers = { "content-type": "text/html; charset=utf-8", ...page?.headers };
    // Vendor URLs in a page are written with two slashes before the host.
    const html = page?.html.replaceAll(/https:\/\/([a-z0-9.-]+)\//g, `https://$1:${portOf(this.#vendors)}/`);
    response.writeHead(page ? (page.status ?? 200) : 404, headers).end(html);
  }
}

/** Page after a passed check. It clears the cookie, so that the next visit is checked again. */
const cleared: VendorPage = {
  html: "<!DOCTYPE html><title>Cleared</title><h1>Welcome</h1><p>Here is what you came for.",
  headers: { "set-cookie": "cleared=; Max-Age=0; Path=/" },
};

/** Resolves every name to this machine. */
export async function resolveToLoopback(): Promise<{ address: string; family: number }[]> {
  return [{ address: "127.0.0.1", family: 4 }];
}

function portOf(server: { address(): unknown }): number {
  const address = server.address();
  if (typeof address === "object" && address && "port" in address) return Number(address.port);
  throw new Error("the site does not listen");
}
