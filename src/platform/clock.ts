/** Where the service reads the time, so that tests own it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since some beginning, which no correction of the machine's time moves. Ages are measured by it. */
  monotonic(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };
