/** Gives a promise's outcome, or rejects with the signal's reason if that comes first. */
export function raceSignal<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Value>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return outcome;
}

/** Gives a promise's outcome; after so many milliseconds without one, what `late` gives or throws. */
export function unlessLate<Value, Late>(
  promise: Promise<Value>,
  milliseconds: number,
  late: () => Late | Promise<Late>,
): Promise<Value | Late> {
  const { promise: verdict, resolve } = Promise.withResolvers<void>();
  let last: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // An outcome that has come while this process was busy is read before the verdict.
    last = setImmediate(resolve);
  }, milliseconds);
  return Promise.race([promise, verdict.then(late)]).finally(() => {
    clearTimeout(timer);
    clearImmediate(last);
  });
}

/** Gives a promise's value, or the fallback when it fails or takes longer than so many milliseconds. */
export function within<Value, Fallback>(
  promise: Promise<Value>,
  milliseconds: number,
  fallback: Fallback,
): Promise<Value | Fallback> {
  return unlessLate<Value | Fallback, Fallback>(
    promise.catch(() => fallback),
    milliseconds,
    () => fallback,
  );
}

/** The time that a piece of work has. Hand its signal to the work, and dispose of it when the work is over. */
export class Deadline implements Disposable {
  /** Aborts when the time is up, with that failure as its reason, or with one of the callers' signals. */
  readonly signal: AbortSignal;
  readonly #expiry = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(milliseconds: number, failure: () => Error, callers: readonly AbortSignal[] = []) {
    this.#timer = setTimeout(() => this.#expiry.abort(failure()), milliseconds);
    this.signal = AbortSignal.any([this.#expiry.signal, ...callers]);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
