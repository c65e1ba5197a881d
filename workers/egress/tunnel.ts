import { connect, type LookupFunction, type Socket } from "node:net";
import type { HostPort } from "../../src/platform/outgoing/address-rules.ts";

/** Connect timeout in milliseconds. Equal to Chromium's own wait for a proxy's answer. */
const connectMs = 30_000;

/** Connects to a checked address of a target. Destroys the connection if `signal` aborts first. */
export function connectTarget(target: HostPort, lookup: LookupFunction, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: target.host, port: target.port, lookup, noDelay: true, autoSelectFamily: true });
    const stop = (error: Error) => socket.destroy(error);
    const timer = setTimeout(
      () => stop(Object.assign(new Error("connection attempt timed out"), { code: "ETIMEDOUT" })),
      connectMs,
    );
    const onAbort = () => stop(new Error("the browser disconnected"));
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => {
      settle();
      resolve(socket);
    });
    // This listener is never removed: an unhandled socket error between two owners would crash the worker.
    socket.on("error", reject);
    socket.once("close", settle);
    if (signal.aborted) onAbort();
  });
}

/** Pipes two connections into each other. If one closes, the other closes after its pending writes. */
export function joinSockets(browser: Socket, target: Socket): void {
  for (const [from, to] of [
    [browser, target],
    [target, browser],
  ] as const) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.once("close", () => to.destroySoon());
  }
}
