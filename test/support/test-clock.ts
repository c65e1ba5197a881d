import { sleep } from "../../src/platform/bounded-wait.ts";
import type { Clock } from "../../src/platform/clock.ts";

/** A clock that a test moves. */
export interface TestClock extends Clock {
  /** Moves it by milliseconds. Ends the waits that are due by then, and has all that is repeated run. */
  advance(milliseconds: number): void;
}

/** Creates a clock that goes as the machine's does, but `now` of one that stands still moves by `advance` alone. */
export function createTestClock({ isStill = false } = {}): TestClock {
  const begin = Date.now();
  let passed = 0;
  let move = new AbortController();
  const repeated = new Set<() => void>();
  const monotonic = (): number => performance.now() + passed;
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
