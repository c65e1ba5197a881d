import { Deadline, raceSignal } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";

/** How long after its timeout a command is cut off, whatever the browser does: time for the browser's own, better answer. */
const watchdogMs = 250;

/** The time that a command has, and what may cut it short. First argument of everything that waits for a browser. */
export interface Progress {
  /** Aborts, with a failure as its reason, when nobody waits for the command any more or its time is up. */
  readonly signal: AbortSignal;
  /** Milliseconds left, at least 1. */
  remaining(): number;
  /** Whether its time is up: nothing is to be begun any more, and only a little grace is left for what was. */
  readonly isOver: boolean;
  /** Gives a promise's outcome, or rejects with the signal's reason if that comes first. */
  race<Value>(promise: Promise<Value>): Promise<Value>;
}

/** Ends a command when its timeout, with some grace, or one of the signals comes. */
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

/** What a command answers whose time is up and of which nothing better is known. */
function timeoutFailure(timeoutMs: number): Error {
  return fail("session-timeout", {}, { detail: `the page did not answer within ${timeoutMs} ms` });
}
