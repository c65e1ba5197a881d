import { fail } from "../../src/platform/errors.ts";

/** How long after its timeout a command is cut off, whatever the browser does: time for the browser's own, better answer. */
const WATCHDOG_MS = 250;

/** The time that a command has, and what may cut it short. First argument of everything that waits for a browser. */
export interface Progress {
  /** Aborts, with a failure as its reason, when nobody waits for the command any more or its time is up. */
  readonly signal: AbortSignal;
  /** Milliseconds left, at least 1: what Playwright takes 0 for is "for ever". */
  remaining(): number;
  /** Gives a promise's outcome, or rejects with the signal's reason if that comes first. */
  race<Value>(promise: Promise<Value>): Promise<Value>;
}

/** Ends a command when its timeout, with some grace, or one of the signals comes. */
export class CommandProgress implements Progress {
  readonly signal: AbortSignal;
  readonly #endsAt: number;
  readonly #timer: NodeJS.Timeout;

  constructor(timeoutMs: number, signals: readonly AbortSignal[]) {
    this.#endsAt = performance.now() + timeoutMs;
    const timeout = new AbortController();
    this.#timer = setTimeout(() => timeout.abort(timeoutFailure(timeoutMs)), timeoutMs + WATCHDOG_MS);
    this.signal = AbortSignal.any([timeout.signal, ...signals]);
  }

  remaining(): number {
    return Math.max(1, Math.ceil(this.#endsAt - performance.now()));
  }

  race<Value>(promise: Promise<Value>): Promise<Value> {
    return raceSignal(promise, this.signal);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

/** What a command answers whose time is up and of which nothing better is known. */
function timeoutFailure(timeoutMs: number): Error {
  return fail("session-timeout", {}, { detail: `the page did not answer within ${timeoutMs} ms` });
}

/** Gives a promise's outcome, or rejects with the signal's reason if that comes first. */
export function raceSignal<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Value>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return outcome;
}

/** Gives a promise's outcome, or the fallback when it takes longer than `ms` or fails. */
export function within<Value, Fallback>(
  promise: Promise<Value>,
  ms: number,
  fallback: Fallback,
): Promise<Value | Fallback> {
  const { promise: outcome, resolve } = Promise.withResolvers<Value | Fallback>();
  const timer = setTimeout(() => resolve(fallback), ms);
  promise.then(resolve, () => resolve(fallback)).finally(() => clearTimeout(timer));
  return outcome;
}
