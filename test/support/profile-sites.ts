import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { Rest } from "./rest.ts";

const page = readFileSync(new URL("pages/profile.html", import.meta.url), "utf8");

/** State found from the previous visit: number of sites that had each kind of storage. */
export interface Found {
  readonly lastingCookies: number;
  readonly sessionCookies: number;
  readonly localStorage: number;
  readonly indexedDb: number;
}

/** Options of a visit. */
interface Visit {
  /** Marker that the previous visit left. */
  readonly found?: string;
  /** Marker that this visit leaves. */
  readonly left?: string;
  /**
   * Navigates to each site separately. Otherwise sites redirect to the next in one renderer of headless shell, which
   * writes localStorage 5 s after a change or when it ends.
   */
  readonly isApart?: boolean;
}

/** Sites with separate addresses that use all kinds of browser storage and check whether it persists. */
export class ProfileSites {
  readonly #servers: readonly Server[];

  constructor(count = 20) {
    this.#servers = Array.from({ length: count }, () =>
      createServer((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end(page)),
    );
  }

  /** Result when all sites find everything. */
  get whole(): Found {
    const { length } = this.#servers;
    return { lastingCookies: length, sessionCookies: length, localStorage: length, indexedDb: length };
  }

  /** Listens on a separate loopback address for each site. */
  async start(): Promise<this> {
    for (const [index, server] of this.#servers.entries()) {
      server.listen(0, `127.0.7.${index + 1}`);
      await once(server, "listening");
    }
    return this;
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  /** Visits all sites and counts the storage found from the visit that left `found`. */
  async visit(rest: Rest, session: string, visit: Visit): Promise<Found> {
    const hosts = this.#servers.map(hostOf);
    const tours = visit.isApart ? hosts.map((host) => [host]) : [hosts];
    const titles: string[] = [];
    for (const tour of tours) titles.push(...(await go(rest, session, tour, visit)));
    const count = (part: string): number => titles.filter((title) => title.split(" ").includes(part)).length;
    return {
      lastingCookies: count("lasting"),
      sessionCookies: count("session"),
      localStorage: count("local"),
      indexedDb: count("indexed"),
    };
  }
}

/** Navigates through the pages of a tour, each of which leads to the next. Returns what each has found. */
async function go(
  rest: Rest,
  session: string,
  [first = "", ...next]: readonly string[],
  visit: Visit,
): Promise<string[]> {
  const { found = "", left = "" } = visit;
  const query = new URLSearchParams([["found", found], ["left", left], ...next.map((site) => ["next", site])]);
  await succeed(rest, `${session}/navigate`, { url: `http://${first}/?${query}`, wait_until: "commit" });
  const { title } = await succeed(rest, `${session}/wait`, { condition: { kind: "selector", selector: "#done" } });
  return title.split(";");
}

async function succeed(rest: Rest, path: string, request: object): Promise<{ title: string }> {
  const { status, body } = await rest(path, request);
  if (status !== 200) throw new Error(`${path}: ${status} ${body.detail}`);
  return body;
}

function hostOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a site does not listen");
  return `${address.address}:${address.port}`;
}
