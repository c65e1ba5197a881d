import { connect, type LookupFunction, type Socket } from "node:net";
import type { Target } from "../../src/platform/outgoing/address-rules.ts";

/** How long a connection to a target may take, as long as Chromium itself would wait for a proxy's answer. */
const connectMs = 30_000;

/** Connects to a checked address of a target; the signal is that of the browser's side going away. */
export function connectTarget(target: Target, lookup: LookupFunction, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: target.host, port: target.port, lookup, noDelay: true, autoSelectFamily: true });
    const stop = (error: Error) => socket.destroy(error);
    const timer = setTimeout(
      () => stop(Object.assign(new Error("connecting timed out"), { code: "ETIMEDOUT" })),
      connectMs,
    );
    const onAbort = () => stop(new Error("the browser has gone"));
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => {
      settle();
      resolve(socket);
    });
    // For good: an error between two of the socket's owners would end the worker.
    socket.on("error", reject);
    socket.once("close", settle);
    if (signal.aborted) onAbort();
  });
}

/** Joins two connections until either ends; what one side closes is closed on the other once it is written out. */
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
