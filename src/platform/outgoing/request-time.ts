import { FetchFault } from "./fetch-fault.ts";

/** Time limits of a request in milliseconds. */
export interface FetchTimes {
  /** Name resolution, connection and TLS handshake. */
  readonly connect: number;
  /** From the end of `connect` to the response headers, including sending the body. */
  readonly head: number;
  /** Between two chunks of the response body. */
  readonly silence: number;
  /** Whole request. */
  readonly whole: number;
}

const failures: Readonly<Record<keyof FetchTimes, string>> = {
  connect: "did not accept a connection",
  head: "did not respond",
  silence: "stopped responding",
  whole: "did not finish",
};

/**
 * Time limits of a running request. Uses one signal and two timers, because a Deadline per part would take 20 KiB for
 * each of hundreds of requests.
 */
export class RequestTime implements Disposable {
  readonly #times: FetchTimes;
  readonly #caller: AbortSignal;
  readonly #ending = new AbortController();
  readonly #whole: NodeJS.Timeout;
  #part: NodeJS.Timeout | undefined;

  constructor(times: FetchTimes, caller: AbortSignal) {
    this.#times = times;
    this.#caller = caller;
    this.#whole = this.#endAfter("whole");
    caller.addEventListener("abort", this.#onCallerAbort, { once: true });
    if (caller.aborted) this.#onCallerAbort();
  }

  /** Aborts with a FetchFault on timeout, or with the caller's reason. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Starts the time limit of the next part. */
  begin(part: "connect" | "head" | "silence"): void {
    clearTimeout(this.#part);
    this.#part = this.#endAfter(part);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#part);
    clearTimeout(this.#whole);
    this.#caller.removeEventListener("abort", this.#onCallerAbort);
  }

  readonly #onCallerAbort = (): void => this.#ending.abort(this.#caller.reason);

  #endAfter(part: keyof FetchTimes): NodeJS.Timeout {
    const ms = this.#times[part];
    const fault = () => new FetchFault("timeout", `${failures[part]} within ${ms / 1_000} s`);
    return setTimeout(() => this.#ending.abort(fault()), ms);
  }
}
