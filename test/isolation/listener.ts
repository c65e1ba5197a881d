import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import { wayNames, ways } from "./way-out.ts";

/** What has arrived, each as `way address`. */
export interface Arrivals {
  readonly seen: ReadonlySet<string>;
  /** Resolves when every way has led to every address. */
  readonly complete: Promise<void>;
}

/** Listens on every way's port, over TCP and UDP, and notes who was reached: nothing else in this network answers. */
export async function listenEverywhere(addresses: readonly string[]): Promise<Arrivals> {
  const seen = new Set<string>();
  const { promise: complete, resolve } = Promise.withResolvers<void>();
  for (const way of wayNames) {
    const { port } = ways[way];
    for (const address of addresses) {
      const note = () => {
        if (seen.add(`${way} ${address}`).size === wayNames.length * addresses.length) resolve();
      };
      const datagrams = createSocket("udp4").on("message", note);
      datagrams.bind(port, address);
      // A connection counts as soon as it is made; http answers it, so that a browser has no reason to wait.
      const connections = createServer((_request, response) => {
        response.writeHead(200, { "access-control-allow-origin": "*" }).end("reached");
      }).on("connection", note);
      connections.listen(port, address);
      await Promise.all([once(datagrams, "listening"), once(connections, "listening")]);
    }
  }
  return { seen, complete };
}
