/** Settles like the promise, or rejects with the signal's reason if it aborts first. */
export function raceSignal<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Value>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  return outcome;
}

/** Settles like the promise. After the timeout, settles like `late` instead. */
export function unlessLate<Value, Late>(
  promise: Promise<Value>,
  milliseconds: number,
  late: () => Late | Promise<Late>,
): Promise<Value | Late> {
  const { promise: verdict, resolve } = Promise.withResolvers<void>();
  let last: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    // If this process was busy, an outcome that arrived in the meantime takes precedence.
    last = setImmediate(resolve);
  }, milliseconds);
  return Promise.race([promise, verdict.then(late)]).finally(() => {
    clearTimeout(timer);
    clearImmediate(last);
  });
}

/** Resolves with the promise's value. Resolves with the fallback on rejection or timeout. */
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

/** Time limit of an operation. Pass its signal to the operation, and dispose of it at the end. */
export class Deadline implements Disposable {
  /** Aborts at the time limit with the given failure, or with a caller's signal. */
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
