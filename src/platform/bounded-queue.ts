/** Limits at which writers must wait. */
export interface QueueBounds<T> {
  readonly items: number;
  /** Maximum total weight. Default: unlimited. */
  readonly weight?: number;
  weigh?(item: T): number;
}

/** Passes items from several writers to one reader, with backpressure. */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #bounds: QueueBounds<T>;
  readonly #items: T[] = [];
  #weight = 0;
  #room: PromiseWithResolvers<void> | undefined;
  #wakeReader: (() => void) | undefined;
  #end: { readonly error?: unknown } | undefined;

  constructor(bounds: QueueBounds<T>) {
    this.#bounds = bounds;
  }

  /**
   * Adds an item, even to a full queue. If the queue is full afterwards, returns a promise that resolves when there is
   * room or the queue ends. Has no effect after the end.
   */
  push(item: T): Promise<void> | undefined {
    if (this.#end) return undefined;
    this.#items.push(item);
    this.#weight += this.#bounds.weigh?.(item) ?? 0;
    this.#wakeReader?.();
    if (!this.#isFull) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  /** Adds an item. If the queue is full, drops the oldest item. */
  pushDroppingOldest(item: T): void {
    if (this.#isFull) this.#take();
    void this.push(item);
  }

  /** Ends the queue. Waiting items are still read. */
  end(): void {
    this.#finish({});
  }

  /** Ends the queue. The reader receives the waiting items, then the error is thrown. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    try {
      for (;;) {
        while (this.#items.length > 0) yield this.#take();
        if (this.#end) break;
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
        this.#wakeReader = undefined;
      }
      if ("error" in this.#end) throw this.#end.error;
    } finally {
      this.#finish({});
    }
  }

  /** Total weight of the waiting items. */
  get weight(): number {
    return this.#weight;
  }

  get #isFull(): boolean {
    const { items, weight = Number.POSITIVE_INFINITY } = this.#bounds;
    return this.#items.length >= items || this.#weight >= weight;
  }

  #take(): T {
    // Callers have checked that the queue is not empty.
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
    this.#wakeReader?.();
    this.#makeRoom();
  }
}
