import type { EventEmitter } from "node:events";

/** Milliseconds in which a second signal is an echo: a terminal signals all processes, and npm forwards its own. */
const echoMs = 2_000;

/** Calls `stop` on each SIGINT and SIGTERM. If the first signal is older than `echoMs`, calls `hurry` first. */
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
