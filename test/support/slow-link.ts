import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A way to a port on which every byte is late, as on a long line, or on which few fit. */
export interface SlowLink extends AsyncDisposable {
  readonly port: number;
  /** Bytes that it has taken, both ways together. */
  readonly carried: number;
}

/** Opens one to a port of this machine; a round trip takes `roundTripMs` longer than without it. Bandwidth is bounded where it is given. */
export async function openSlowLink(
  toPort: number,
  roundTripMs: number,
  bytesPerSecond = Number.POSITIVE_INFINITY,
): Promise<SlowLink> {
  const sockets = new Set<Socket>();
  let carried = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const service = connect({ port: toPort, host: "127.0.0.1", noDelay: true });
    for (const [from, to] of [
      [client, service],
      [service, client],
    ] as const) {
      sockets.add(from);
      // Timers of one length end in the order in which they were set.
      from.on("data", (bytes) => {
        carried += bytes.length;
        setTimeout(() => to.write(bytes), roundTripMs / 2);
        const takes = (bytes.length * 1_000) / bytesPerSecond;
        if (takes === 0) return;
        // What is not read fills the buffers of who sends.
        from.pause();
        setTimeout(() => from.resume(), takes);
      });
      from.on("close", () => void setTimeout(() => to.destroy(), roundTripMs / 2));
      from.on("error", () => undefined);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the link does not listen");
  return {
    port: address.port,
    get carried() {
      return carried;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
