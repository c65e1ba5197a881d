import { sleep } from "./bounded-wait.ts";

/** Source of time and timers. */
export interface Clock {
  /** Unix time in milliseconds. */
  now(): number;
  /** Milliseconds of a monotonic clock, unaffected by changes of the system time. Used for ages. */
  monotonic(): number;
  /** Resolves after the time, or when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` at an interval until the returned function is called. */
  every(milliseconds: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep,
  every(milliseconds, run) {
    const timer = setInterval(run, milliseconds);
    return () => clearInterval(timer);
  },
};
