/** What was sent to a page as input, and what of it the page has yet to handle. */
export class InputTally {
  /** How much was sent. */
  sent = 0;
  readonly #open = new Set<Promise<unknown>>();

  /** How much the page has yet to handle. */
  get behind(): number {
    return this.#open.size;
  }

  /** Counts something that was sent until it is answered; gives the answer. */
  follow<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.sent += 1;
    this.#open.add(answer);
    const close = (): void => {
      this.#open.delete(answer);
    };
    answer.then(close, close);
    return answer;
  }

  /** Resolves when the page has handled all that was sent to it by now. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#open);
  }
}
