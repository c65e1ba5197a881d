// How many messages a client may be ahead of its method before its socket is no longer read.
const AHEAD = 16;

/** A source that can be held while its reader is behind. */
export interface Holdable {
  pause(): void;
  resume(): void;
}

/** Turns pushed messages into an async iterable for one reader, and holds the source while the reader is behind. */
export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #source: Holdable;
  readonly #waiting: T[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;
  #held = false;

  constructor(source: Holdable) {
    this.#source = source;
  }

  push(message: T): void {
    if (this.#end) {
      return;
    }
    this.#waiting.push(message);
    if (this.#waiting.length >= AHEAD && !this.#held) {
      this.#held = true;
      this.#source.pause();
    }
    this.#wake?.();
  }

  /** No further message comes; those that wait are still read. */
  end(): void {
    this.#end ??= {};
    this.#wake?.();
  }

  /** The source broke: the reader gets the error once it has read what waits. */
  fail(error: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const message = this.#waiting.shift();
      if (message !== undefined) {
        if (this.#held && this.#waiting.length < AHEAD / 2) {
          this.#held = false;
          this.#source.resume();
        }
        yield message;
      } else if (this.#end) {
        if ("error" in this.#end) {
          throw this.#end.error;
        }
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    }
  }
}
