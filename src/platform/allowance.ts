/** Token bucket. Computes the delay that keeps a rate below `perSecond`, with bursts of up to one second's amount. */
export class Allowance {
  readonly #perSecond: number;
  #used = 0;
  #at = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Consumes `amount` and returns the milliseconds to wait before the next use. `now` is in milliseconds. */
  use(amount: number, now: number): number {
    const regained = (Math.max(0, now - this.#at) * this.#perSecond) / 1_000;
    this.#at = now;
    this.#used = Math.max(0, this.#used - regained) + amount;
    return Math.max(0, ((this.#used - this.#perSecond) * 1_000) / this.#perSecond);
  }
}
