/**
 * Maximum milliseconds that count between two checks. The rest of a longer interval counts as waiting for a processor.
 */
const maxGapMs = 8;

/**
 * Limits the time that a task uses on a page's thread. Time in which other processes had the processor does not count.
 */
export class TimeBudget {
  #leftMs: number;
  #checkedAt = performance.now();

  constructor(milliseconds: number) {
    this.#leftMs = milliseconds;
  }

  /**
   * Whether the time is spent. Must be called at intervals below `maxGapMs`, because longer intervals do not count in
   * full.
   */
  isSpent(): boolean {
    const now = performance.now();
    this.#leftMs -= Math.min(now - this.#checkedAt, maxGapMs);
    this.#checkedAt = now;
    return this.#leftMs <= 0;
  }
}
