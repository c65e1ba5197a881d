/** How far back demand is looked at, in milliseconds. */
const windowMs = 30_000;

/** As many browsers are kept as were asked for in 5 s: in that time a worker launches some ten. */
const share = 5_000 / windowMs;

/** Says how many browsers of a kind are worth keeping warm, by what was asked for lately. */
export class Demand {
  readonly #least: number;
  readonly #most: number;
  #asked: number[] = [];

  /** `least` browsers are kept although nobody asks, and never more than `most`. */
  constructor(least: number, most: number) {
    this.#least = least;
    this.#most = most;
  }

  /** Takes note that a browser was asked for; `now` is in milliseconds of any clock that only goes forward. */
  note(now: number): void {
    this.#asked.push(now);
  }

  /** Gives how many to keep warm now. */
  target(now: number): number {
    this.#asked = this.#asked.filter((at) => now - at < windowMs);
    return Math.min(this.#most, Math.max(this.#least, Math.ceil(this.#asked.length * share)));
  }
}
