import type { EventEmitter } from "node:events";

/** Milliseconds in which a signal may repeat: a terminal signals all processes, and npm forwards the signal. */
const echoMs = 2_000;

/** Calls `stop` on each SIGINT and SIGTERM. Calls `hurry` first if the first signal came more than `echoMs` earlier. */
export function onStopSignals(from: EventEmitter, stop: () => void, hurry: () => void): void {
  let stopRequestedAt: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"]) {
    from.on(signal, () => {
      stopRequestedAt ??= performance.now();
      if (performance.now() - stopRequestedAt > echoMs) hurry();
      stop();
    });
  }
}
