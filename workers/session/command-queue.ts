import { fail } from "../../src/platform/errors.ts";
import { withinActiveSpan } from "../../src/platform/traces/spans.ts";

/** Maximum number of queued commands, and of running and waiting captures. */
const capacity = 64;

export type QueuedKind = "navigate" | "interact" | "wait";

export interface QueuedCommand {
  readonly kind: QueuedKind;
  /** Whether the command is accepted, stays queued and runs while the queue is paused. */
  readonly whilePaused: boolean;
  /** Removes the command while it is queued. A running command must observe the signal itself. */
  readonly dropped: AbortSignal;
}

interface Entry {
  readonly kind: QueuedKind;
  readonly whilePaused: boolean;
  start(): Promise<void>;
  drop(reason: unknown): void;
}

/**
 * FIFO queue of a session's commands. Navigate, interact and wait run one at a time. A capture waits only for a running
 * navigate or interact. Captures run one at a time, because each may need 64 MiB.
 */
export class CommandQueue {
  readonly #waiting: Entry[] = [];
  #running: { kind: QueuedKind; done: Promise<void> } | undefined;
  #capture: Promise<void> = Promise.resolve();
  #captures = 0;
  #closed: Error | undefined;
  #paused: Error | undefined;

  get length(): number {
    return this.#waiting.length;
  }

  /** Whether a navigate, interact or capture runs, or any command or capture is queued. */
  get isBusy(): boolean {
    const isActing = this.#running !== undefined && this.#running.kind !== "wait";
    return isActing || this.#waiting.length > 0 || this.#captures > 0;
  }

  /** Queues a command. Settles with the command's result. */
  run<Value>({ kind, whilePaused, dropped }: QueuedCommand, work: () => Promise<Value>): Promise<Value> {
    if (this.#closed) return Promise.reject(this.#closed);
    if (this.#paused && !whilePaused) return Promise.reject(this.#paused);
    if (this.#waiting.length >= capacity) return Promise.reject(tooMany());
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const inTrace = withinActiveSpan(work);
    const onAbort = () => {
      const index = this.#waiting.indexOf(entry);
      if (index >= 0) this.#waiting.splice(index, 1);
      reject(dropped.reason);
    };
    const entry: Entry = {
      kind,
      whilePaused,
      drop: (reason) => {
        // The signal may depend on a signal of the session, which would keep the listener until the session ends.
        dropped.removeEventListener("abort", onAbort);
        reject(reason);
      },
      start: async () => {
        dropped.removeEventListener("abort", onAbort);
        await inTrace().then(resolve, reject);
      },
    };
    if (dropped.aborted) return Promise.reject(dropped.reason);
    dropped.addEventListener("abort", onAbort, { once: true });
    this.#waiting.push(entry);
    this.#startNext();
    return promise;
  }

  /**
   * Runs a capture once earlier captures and a running navigate or interact have ended. Queued commands do not wait for
   * the capture.
   */
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

  /** Rejects queued and new commands until resumed. Captures and `whilePaused` commands still run. */
  pause(failure: Error): void {
    this.#paused = failure;
    for (const entry of this.#waiting.splice(0)) {
      if (entry.whilePaused) this.#waiting.push(entry);
      else entry.drop(failure);
    }
  }

  /** Rejects queued commands. New commands are accepted. */
  drop(failure: Error): void {
    for (const entry of this.#waiting.splice(0)) entry.drop(failure);
  }

  /** Accepts commands after a pause. */
  resume(): void {
    this.#paused = undefined;
  }

  /** Rejects all queued and new commands. The caller must end the running command. */
  close(failure: Error): void {
    this.#closed = failure;
    this.drop(failure);
  }

  #startNext(): void {
    if (this.#running) return;
    const next = this.#waiting.shift();
    if (!next) return;
    const done = next.start().finally(() => {
      this.#running = undefined;
      this.#startNext();
    });
    this.#running = { kind: next.kind, done };
  }
}

function tooMany(): Error {
  const detail = `${capacity} commands or captures of this session are already waiting: retry later`;
  return fail("conflict", {}, { detail });
}
