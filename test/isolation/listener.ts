import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:http";
import { wayNames, ways } from "./way-out.ts";

/** Arrived connections and packets, each as `channel address`. */
export interface Arrivals {
  readonly seen: ReadonlySet<string>;
  /** Resolves when each address was reached through each channel. */
  readonly complete: Promise<void>;
}

/** Records which addresses are reached on each channel's port, over TCP and UDP. No other host responds. */
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
      // Established connections count. The HTTP response avoids waits in the browser.
      const connections = createServer((_request, response) => {
        response.writeHead(200, { "access-control-allow-origin": "*" }).end("reached");
      }).on("connection", note);
      connections.listen(port, address);
      await Promise.all([once(datagrams, "listening"), once(connections, "listening")]);
    }
  }
  return { seen, complete };
}
