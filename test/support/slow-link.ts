import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** Relay to a port that delays every byte or limits the bandwidth. */
export interface SlowLink extends AsyncDisposable {
  readonly port: number;
  /** Bytes carried in both directions. */
  readonly carried: number;
}

/** Opens a relay to a local port that adds `roundTripMs` to each round trip and optionally limits the bandwidth. */
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
      // Timers of equal length fire in the order of their creation.
      from.on("data", (bytes) => {
        carried += bytes.length;
        setTimeout(() => to.write(bytes), roundTripMs / 2);
        const takes = (bytes.length * 1_000) / bytesPerSecond;
        if (takes === 0) return;
        // Unread data fills the buffers of the sender.
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
