/** Tells how long nothing was heard of a process. */
export interface Silence {
  /** Begins to count anew, with the milliseconds that the process may be silent until it is heard for the first time. */
  begin(firstPatience: number): void;
  /** Says whether the process has been silent for too long. Is to be asked several times a second. */
  isTooLong(): boolean;
}

/** What one look counts for at most, in milliseconds. */
const longestLook = 1_000;

/**
 * Counts the silence of a process, of which `signs` counts the signs of life, only while this process runs itself: one that
 * was stopped for a while, or slept with its machine, must not take its own absence for the other's.
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
