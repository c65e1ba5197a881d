import type { EventEmitter } from "node:events";

/** Milliseconds in which a signal may be the one before: a terminal sends Ctrl-C to all, and npm then passes its own on. */
const echoMs = 2_000;

/** Calls `stop` on each SIGINT and SIGTERM. If the first one was longer ago than an echo takes, calls `hurry` before. */
export function onStopSignals(from: EventEmitter, stop: () => void, hurry: () => void): void {
  let toldAt: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"]) {
    from.on(signal, () => {
      toldAt ??= performance.now();
      if (performance.now() - toldAt > echoMs) hurry();
      stop();
    });
  }
}
