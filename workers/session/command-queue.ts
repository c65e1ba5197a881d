import { fail } from "../../src/platform/errors.ts";

/** How many commands may wait their turn. */
const capacity = 64;

/** A kind of command that takes its turn. */
export type QueuedKind = "navigate" | "interact" | "wait";

/** A command's place in the order. */
export interface Turn {
  readonly kind: QueuedKind;
  /** Takes its turn although the queue is paused. */
  readonly whilePaused: boolean;
  /** Drops it while it waits; what it does to a running one is the command's part. */
  readonly dropped: AbortSignal;
}

interface Entry {
  readonly kind: QueuedKind;
  readonly whilePaused: boolean;
  start(): Promise<void>;
  drop(reason: unknown): void;
}

/**
 * The order of a session's commands: navigate, interact and wait run one after the other as they came. A capture waits
 * only for a running navigate or interact, and captures are made one at a time, since each may hold 64 MiB.
 */
export class CommandQueue {
  readonly #waiting: Entry[] = [];
  #running: { kind: QueuedKind; done: Promise<void> } | undefined;
  #capture: Promise<void> = Promise.resolve();
  #captures = 0;
  #closed: Error | undefined;
  #paused: Error | undefined;

  /** How many commands wait their turn. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Runs a command in its turn. */
  run<Value>({ kind, whilePaused, dropped }: Turn, work: () => Promise<Value>): Promise<Value> {
    if (this.#closed) return Promise.reject(this.#closed);
    if (this.#paused && !whilePaused) return Promise.reject(this.#paused);
    if (this.#waiting.length >= capacity) return Promise.reject(tooMany());
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const onAbort = () => {
      const index = this.#waiting.indexOf(entry);
      if (index >= 0) this.#waiting.splice(index, 1);
      reject(dropped.reason);
    };
    const entry: Entry = {
      kind,
      whilePaused,
      drop: reject,
      start: async () => {
        dropped.removeEventListener("abort", onAbort);
        await work().then(resolve, reject);
      },
    };
    if (dropped.aborted) return Promise.reject(dropped.reason);
    dropped.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(entry);
    this.#pump();
    return promise;
  }

  /** Runs a capture beside the commands. */
  async capture<Value>(dropped: AbortSignal, work: () => Promise<Value>): Promise<Value> {
    if (this.#closed) throw this.#closed;
    if (this.#captures >= capacity) throw tooMany();
    this.#captures += 1;
    const before = this.#capture;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    this.#capture = done;
    try {
      await before;
      if (this.#running && this.#running.kind !== "wait") await this.#running.done;
      if (this.#closed) throw this.#closed;
      dropped.throwIfAborted();
      return await work();
    } finally {
      this.#captures -= 1;
      resolve();
    }
  }

  /** Refuses what waits, and what comes, until the queue is resumed; not captures, nor what takes its turn all the same. */
  pause(failure: Error): void {
    this.#paused = failure;
    for (const entry of this.#waiting.splice(0)) {
      if (entry.whilePaused) this.#waiting.push(entry);
      else entry.drop(failure);
    }
  }

  /** Refuses what waits, and nothing that comes. */
  drop(failure: Error): void {
    for (const entry of this.#waiting.splice(0)) entry.drop(failure);
  }

  /** Takes commands again. */
  resume(): void {
    this.#paused = undefined;
  }

  /** Refuses everything that waits, and all that comes, with one failure; what runs is the caller's to end. */
  close(failure: Error): void {
    this.#closed = failure;
    this.drop(failure);
  }

  #pump(): void {
    if (this.#running) return;
    const next = this.#waiting.shift();
    if (!next) return;
    const done = next.start().finally(() => {
      this.#running = undefined;
      this.#pump();
    });
    this.#running = { kind: next.kind, done };
  }
}

function tooMany(): Error {
  return fail("conflict", {}, { detail: `${capacity} commands of this session wait already` });
}
