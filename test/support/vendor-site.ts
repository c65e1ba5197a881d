import { once } from "node:events";
import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { makeSelfSigned } from "./self-signed.ts";

/** Flags of browsers that are to visit the site: its certificate is its own. */
export const vendorSiteFlags = ["--ignore-certificate-errors"];

/** A page of the site: its markup, where `https://host/...` of others leads to this machine, and what comes with it. */
export interface VendorPage {
  readonly html: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What every frame of every vendor shows: a button that says to the page around it that the check was passed. */
const frame = `<!DOCTYPE html><body style="margin:0"><button id=pass style="width:100%;height:60px"
  onclick="parent.postMessage('passed', '*')">I am human</button>`;

/**
 * Pages on loopback together with the servers of others that they embed, whose names all lead to one more server. Some of
 * these names are known to browsers as https only, so that server speaks TLS.
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

  /** Begins to listen. */
  async start(): Promise<this> {
    for (const server of [this.#plain, this.#vendors]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    return this;
  }

  /** What a worker's pages must be allowed to reach: the site, and whatever host on the vendors' port. */
  allow(hosts: readonly string[]): string[] {
    return [`127.0.0.1:${portOf(this.#plain)}`, ...hosts.map((host) => `${host}:${portOf(this.#vendors)}`)];
  }

  /** Gives the address of a page. */
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
    // Two slashes before a host are how a page of the site writes an address of somebody else's.
    const html = page?.html.replaceAll(/https:\/\/([a-z0-9.-]+)\//g, `https://$1:${portOf(this.#vendors)}/`);
    response.writeHead(page ? (page.status ?? 200) : 404, headers).end(html);
  }
}

/** What a page gives to whoever has passed its check; it asks again the next time. */
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
