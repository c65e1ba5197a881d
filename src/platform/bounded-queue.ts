/** How much may wait in a queue before who adds is asked to wait. */
export interface QueueBounds<T> {
  readonly items: number;
  /** How much of `weight` may; nothing weighs anything where this is left out. */
  readonly weight?: number;
  weigh?(item: T): number;
}

/** Carries items of several writers to one reader; a writer waits while the reader is behind. */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #bounds: QueueBounds<T>;
  readonly #items: T[] = [];
  #weight = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #news: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;

  constructor(bounds: QueueBounds<T>) {
    this.#bounds = bounds;
  }

  /** Adds an item. A promise says that the queue is full, and resolves when it is not. What comes after the end is dropped. */
  push(item: T): Promise<void> | undefined {
    if (this.#end) return undefined;
    this.#items.push(item);
    this.#weight += this.#bounds.weigh?.(item) ?? 0;
    this.#news?.();
    if (!this.#isFull) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  /** Adds an item, and drops the oldest one when the queue is full. */
  pushOver(item: T): void {
    if (this.#isFull) this.#take();
    void this.push(item);
  }

  /** No further item comes; those that are here are still read. */
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
        while (this.#items.length > 0) yield this.#take();
        if (this.#end) break;
        await new Promise<void>((resolve) => {
          this.#news = resolve;
        });
        this.#news = undefined;
      }
      if ("error" in this.#end) throw this.#end.error;
    } finally {
      this.#finish({});
    }
  }

  /** How much the items weigh that wait. */
  get weight(): number {
    return this.#weight;
  }

  get #isFull(): boolean {
    const { items, weight = Number.POSITIVE_INFINITY } = this.#bounds;
    return this.#items.length >= items || this.#weight >= weight;
  }

  #take(): T {
    // The boundary where a queue that is known not to be empty gives its first item.
    const item = this.#items.shift() as T;
    this.#weight -= this.#bounds.weigh?.(item) ?? 0;
    if (!this.#isFull) this.#makeRoom();
    return item;
  }

  #makeRoom(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#news?.();
    this.#makeRoom();
  }
}
