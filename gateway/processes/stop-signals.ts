import type { EventEmitter } from "node:events";

/**
 * Milliseconds within which a second signal counts as a copy of the first. The terminal signals all processes, and npm
 * forwards the signal.
 */
const repeatMs = 2_000;

/**
 * Calls `stop` on each SIGINT and SIGTERM. If the first signal was more than `repeatMs` earlier, first calls `exitNow`.
 */
export function onStopSignals(from: EventEmitter, stop: () => void, exitNow: () => void): void {
  let stopRequestedAt: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"]) {
    from.on(signal, () => {
      stopRequestedAt ??= performance.now();
      if (performance.now() - stopRequestedAt > repeatMs) exitNow();
      stop();
    });
  }
}
