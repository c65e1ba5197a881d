import type { ResourceChange } from "../kernel/account-change.ts";

/**
 * Maximum number of buffered changes. More are replaced by `resync`, after which a client must read everything again.
 */
const limit = 1_000;

/** Changes buffered for a reader. Several changes of a resource are merged. The first notice is always `resync`. */
export class PendingNotices implements AsyncIterable<ResourceChange | "resync"> {
  readonly #changes = new Map<string, ResourceChange>();
  #isStale = true;
  #wake: PromiseWithResolvers<void> | undefined;
  #end: { readonly error?: unknown } | undefined;

  /** Buffers a change, unless `resync` is pending or the reader has ended. */
  add(change: ResourceChange): void {
    // The reader reads everything after `resync`, so single changes are not needed.
    if (this.#isStale || this.#end) return;
    const key = `${change.resource} ${change.id}`;
    const earlier = this.#changes.get(key);
    const isNew = earlier?.change === "created" && change.change === "changed";
    this.#changes.set(key, isNew ? earlier : change);
    if (this.#changes.size > limit) this.resync();
    this.#wake?.resolve();
  }

  /** Replaces the buffered changes by `resync`. */
  resync(): void {
    this.#isStale = true;
    this.#changes.clear();
    this.#wake?.resolve();
  }

  /** Ends the iteration. Buffered changes are dropped. */
  end(): void {
    this.#finish({});
  }

  /** Ends the iteration with an error, unless it has already ended. Buffered changes are dropped. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ResourceChange | "resync"> {
    while (!this.#end) {
      const next = this.#take();
      if (next) {
        yield next;
        continue;
      }
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
    if ("error" in this.#end) throw this.#end.error;
  }

  #take(): ResourceChange | "resync" | undefined {
    if (this.#isStale) {
      this.#isStale = false;
      return "resync";
    }
    for (const [key, change] of this.#changes) {
      this.#changes.delete(key);
      return change;
    }
    return undefined;
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake?.resolve();
  }
}
