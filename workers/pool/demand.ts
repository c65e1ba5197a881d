/** Demand window in milliseconds. */
const windowMs = 30_000;

/**
 * Warm browsers per request in the window: enough for the average demand of 5 s, in which a worker launches about ten
 * browsers.
 */
const share = 5_000 / windowMs;

/** Computes from recent requests how many browsers of a runtime to keep warm. */
export class Demand {
  readonly #min: number;
  readonly #max: number;
  #requests: number[] = [];

  /** Keeps at least `min` browsers even without demand, and at most `max`. */
  constructor(min: number, max: number) {
    this.#min = min;
    this.#max = max;
  }

  /** Records a request for a browser. `now` is in milliseconds of a monotonic clock. */
  record(now: number): void {
    this.#requests.push(now);
  }

  /** Returns the number of browsers to keep warm. */
  target(now: number): number {
    this.#requests = this.#requests.filter((at) => now - at < windowMs);
    return Math.min(this.#max, Math.max(this.#min, Math.ceil(this.#requests.length * share)));
  }
}
