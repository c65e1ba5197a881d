/** Counts the input sent to a page. */
export class InputTally {
  sent = 0;
  readonly #open = new Set<Promise<unknown>>();

  /** Counts an input. `settled` waits for `answer`, the response to the input. Returns `answer`. */
  follow<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.sent += 1;
    this.#open.add(answer);
    const close = (): void => {
      this.#open.delete(answer);
    };
    answer.then(close, close);
    return answer;
  }

  /** Resolves when the page has handled all input sent so far. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#open);
  }
}
