import { sleep } from "../../src/platform/bounded-wait.ts";
import type { Clock } from "../../src/platform/clock.ts";

/** Clock that a test advances. */
export interface TestClock extends Clock {
  /** Advances the clock by milliseconds. Ends the waits that are due and runs all repeated jobs. */
  advance(milliseconds: number): void;
}

/** Creates a clock that runs like the machine's. If `isStill`, only `advance` changes its times and ends its waits. */
export function createTestClock({ isStill = false } = {}): TestClock {
  const begin = Date.now();
  const beginMonotonic = performance.now();
  let passed = 0;
  let move = new AbortController();
  const repeated = new Set<() => void>();
  const monotonic = (): number => (isStill ? beginMonotonic : performance.now()) + passed;
  return {
    now: () => (isStill ? begin : Date.now()) + passed,
    monotonic,
    async sleep(milliseconds, signal) {
      const due = monotonic() + milliseconds;
      for (let left = milliseconds; left > 0 && !signal?.aborted; left = due - monotonic())
        await sleep(left, signal ? AbortSignal.any([signal, move.signal]) : move.signal);
    },
    every(milliseconds, run) {
      const timer = setInterval(run, milliseconds);
      const runEarly = (): void => {
        timer.refresh();
        run();
      };
      repeated.add(runEarly);
      return () => {
        clearInterval(timer);
        repeated.delete(runEarly);
      };
    },
    advance(milliseconds) {
      passed += milliseconds;
      const moved = move;
      move = new AbortController();
      moved.abort();
      for (const run of repeated) run();
    },
  };
}
