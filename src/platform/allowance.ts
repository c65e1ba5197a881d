/** Says how long to wait so that no more than so much comes in a second; as much may come at once. */
export class Allowance {
  readonly #perSecond: number;
  #used = 0;
  #at = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Takes note of something that has come; gives the milliseconds until more may. `now` is in milliseconds. */
  use(amount: number, now: number): number {
    const regained = ((now - this.#at) * this.#perSecond) / 1_000;
    this.#at = now;
    this.#used = Math.max(0, this.#used - regained) + amount;
    return Math.max(0, ((this.#used - this.#perSecond) * 1_000) / this.#perSecond);
  }
}
