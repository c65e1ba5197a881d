/** Measures the time since the last heartbeat of a process. */
export interface Silence {
  /** Restarts the measurement. The first heartbeat may take `firstAllowedMs` milliseconds. */
  begin(firstAllowedMs: number): void;
  /**
   * Returns whether the process has been silent for too long. Must be called at least once a second, because each call
   * counts at most one second.
   */
  isTooLong(): boolean;
}

/** Maximum number of milliseconds added per call of `isTooLong`. */
const maxStep = 1_000;

/**
 * Creates the measurement. `heartbeats` returns the number of heartbeats so far. After the first heartbeat, the process
 * may be silent for `allowedMs`. Time in which this process was stopped or the machine suspended does not count.
 */
export function createSilence(heartbeats: () => number, allowedMs: number): Silence {
  let lastHeartbeats = 0;
  let silentFor = 0;
  let allowed = 0;
  let polledAt = 0;
  return {
    begin(firstAllowedMs) {
      lastHeartbeats = heartbeats();
      silentFor = 0;
      allowed = firstAllowedMs;
      polledAt = performance.now();
    },
    isTooLong() {
      const now = performance.now();
      silentFor += Math.min(now - polledAt, maxStep);
      polledAt = now;
      if (heartbeats() !== lastHeartbeats) {
        lastHeartbeats = heartbeats();
        silentFor = 0;
        allowed = allowedMs;
      }
      return silentFor > allowed;
    },
  };
}
