/** Carries messages of several writers to one reader; a writer waits while the reader is behind. */
export class Outbox<T> implements AsyncIterable<T> {
  readonly #capacity: number;
  readonly #messages: T[] = [];
  #room = Promise.withResolvers<void>();
  #news = Promise.withResolvers<void>();
  #end: { readonly error?: unknown } | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Adds a message; resolves when the reader is near enough for the next. What comes after the end is dropped. */
  async push(message: T): Promise<void> {
    if (this.#end) return;
    this.#messages.push(message);
    this.#news.resolve();
    while (this.#messages.length >= this.#capacity && !this.#end) await this.#room.promise;
  }

  /** No further message comes; those that are here are still read. */
  end(): void {
    this.#finish({});
  }

  /** The reader gets the error once it has read what is here. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      for (;;) {
        for (let message = this.#messages.shift(); message !== undefined; message = this.#messages.shift()) {
          this.#room.resolve();
          this.#room = Promise.withResolvers();
          yield message;
        }
        if (this.#end) break;
        this.#news = Promise.withResolvers();
        await this.#news.promise;
      }
      if ("error" in this.#end) throw this.#end.error;
    } finally {
      this.#finish({});
    }
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#news.resolve();
    this.#room.resolve();
  }
}
