/** Measures how long a process has been silent. */
export interface Silence {
  /** Restarts the measurement. Until its first sign of life the process may be silent for `firstPatience` milliseconds. */
  begin(firstPatience: number): void;
  /** Returns whether the process has been silent for too long. Must be called several times a second. */
  isTooLong(): boolean;
}

/** Milliseconds that one call of `isTooLong` adds at most. */
const longestLook = 1_000;

/**
 * Creates the measurement. `signs` returns how many signs of life have come. Time in which this process itself was stopped,
 * or asleep with its machine, does not count.
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
