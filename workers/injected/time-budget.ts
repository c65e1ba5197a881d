/** Longest time between two checks that counts, in milliseconds. In a longer one, the thread waited for a processor. */
const maxGapMs = 8;

/** Time for work of a page's thread, without the times in which other processes had the processor. */
export class TimeBudget {
  #leftMs: number;
  #checkedAt = performance.now();

  constructor(milliseconds: number) {
    this.#leftMs = milliseconds;
  }

  /** Whether the time is spent. Called at short intervals, because longer ones do not count in full. */
  isSpent(): boolean {
    const now = performance.now();
    this.#leftMs -= Math.min(now - this.#checkedAt, maxGapMs);
    this.#checkedAt = now;
    return this.#leftMs <= 0;
  }
}
