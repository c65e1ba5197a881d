/** Demand window in milliseconds. */
const windowMs = 30_000;

/** Share of recent requests to keep warm: the average demand of 5 s, in which a worker launches about ten browsers. */
const share = 5_000 / windowMs;

/** Computes how many browsers of a runtime to keep warm from recent requests. */
export class Demand {
  readonly #min: number;
  readonly #max: number;
  #asked: number[] = [];

  /** Keeps at least `min` browsers even without demand, and at most `max`. */
  constructor(min: number, max: number) {
    this.#min = min;
    this.#max = max;
  }

  /** Records a request for a browser. `now` is in milliseconds of a monotonic clock. */
  note(now: number): void {
    this.#asked.push(now);
  }

  /** Returns the number of browsers to keep warm. */
  target(now: number): number {
    this.#asked = this.#asked.filter((at) => now - at < windowMs);
    return Math.min(this.#max, Math.max(this.#min, Math.ceil(this.#asked.length * share)));
  }
}
