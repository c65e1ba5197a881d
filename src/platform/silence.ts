/** Measures the time since the last heartbeat of a process. */
export interface Silence {
  /** Restarts the measurement. The first heartbeat may take `firstPatience` milliseconds. */
  begin(firstPatience: number): void;
  /** Returns whether the process has been silent for too long. Must be called several times a second. */
  isTooLong(): boolean;
}

/** Maximum number of milliseconds added per call of `isTooLong`. */
const longestLook = 1_000;

/**
 * Creates the measurement. `signs` returns the number of heartbeats. Time in which this process was stopped or the
 * machine suspended does not count.
 */
export function createSilence(signs: () => number, patience: number): Silence {
  let heard = 0;
  let silentFor = 0;
  let allowed = 0;
  let lookedAt = 0;
  return {
    begin(firstPatience) {
      heard = signs();
      silentFor = 0;
      allowed = firstPatience;
      lookedAt = performance.now();
    },
    isTooLong() {
      const now = performance.now();
      silentFor += Math.min(now - lookedAt, longestLook);
      lookedAt = now;
      if (signs() !== heard) {
        heard = signs();
        silentFor = 0;
        allowed = patience;
      }
      return silentFor > allowed;
    },
  };
}
