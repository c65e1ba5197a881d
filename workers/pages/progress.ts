import { Deadline, raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";

/** Grace period in milliseconds after a command's timeout, so that a more specific error can arrive first. */
const watchdogMs = 250;

/** Deadline and cancellation of a command. */
export interface Progress {
  /** Aborts with a failure when the command is abandoned or out of time. */
  readonly signal: AbortSignal;
  /** Returns the milliseconds left, at least 1. */
  remaining(): number;
  /**
   * Whether the timeout has passed or the signal has aborted. If so, no new calls may start. Running calls have a grace
   * period.
   */
  readonly isOver: boolean;
  /** Settles like the promise, or rejects with the signal's reason if the signal aborts first. */
  race<Value>(promise: Promise<Value>): Promise<Value>;
}

/**
 * Progress of a command. The signal aborts after a timeout plus grace period, or when one of the given signals aborts.
 */
export class CommandProgress implements Progress {
  readonly signal: AbortSignal;
  readonly #endsAt: number;
  readonly #deadline: Deadline;

  constructor(timeoutMs: number, signals: readonly AbortSignal[]) {
    this.#endsAt = performance.now() + timeoutMs;
    this.#deadline = new Deadline(timeoutMs + watchdogMs, () => timeoutFailure(timeoutMs), signals);
    this.signal = this.#deadline.signal;
  }

  remaining(): number {
    return Math.max(1, Math.ceil(this.#endsAt - performance.now()));
  }

  get isOver(): boolean {
    return this.signal.aborted || performance.now() >= this.#endsAt;
  }

  race<Value>(promise: Promise<Value>): Promise<Value> {
    return raceSignal(promise, this.signal);
  }

  [Symbol.dispose](): void {
    this.#deadline[Symbol.dispose]();
  }
}

/** Creates the failure of a command that ran out of time without a more specific error. */
function timeoutFailure(timeoutMs: number): Error {
  return fail(
    "session-timeout",
    {},
    { detail: `the page did not respond within ${timeoutMs} ms: try again, or increase timeout_ms` },
  );
}
