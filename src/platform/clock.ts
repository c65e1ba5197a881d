import { sleep } from "./bounded-wait.ts";

/** Where the service reads the time and waits for it, so that tests own both. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since some beginning, which no correction of the machine's time moves. Ages are measured by it. */
  monotonic(): number;
  /** Waits; resolves early, without failing, when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` each time so many milliseconds have passed, until the returned function is called. */
  every(milliseconds: number, run: () => void): () => void;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep,
  every(milliseconds, run) {
    const timer = setInterval(run, milliseconds);
    return () => clearInterval(timer);
  },
};
