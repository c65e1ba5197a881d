import { FetchFault } from "./fetch-fault.ts";

/** Milliseconds that each part of a request may take. */
export interface FetchTimes {
  /** To resolve the name, to connect and to agree on TLS. */
  readonly connect: number;
  /** From the end of that until the answer's head has come; the request's body is sent meanwhile. */
  readonly head: number;
  /** Between two parts of the answer's body. */
  readonly silence: number;
  /** For all of it. */
  readonly whole: number;
}

const failures: Readonly<Record<keyof FetchTimes, string>> = {
  connect: "could not be connected to",
  head: "did not answer",
  silence: "fell silent",
  whole: "was not done",
};

/**
 * The time that a request has, for all of it and for the part that it is in. There are hundreds of requests at once: it
 * is one signal and two timers, where a Deadline for each part were 20 KiB.
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
    caller.addEventListener("abort", this.#callOff, { once: true });
    if (caller.aborted) this.#callOff();
  }

  /** Aborts when the time is up, with that FetchFault, or when the caller calls the request off, with his reason. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Begins a part of the request, which ends the one before. */
  begin(part: "connect" | "head" | "silence"): void {
    clearTimeout(this.#part);
    this.#part = this.#endAfter(part);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#part);
    clearTimeout(this.#whole);
    this.#caller.removeEventListener("abort", this.#callOff);
  }

  readonly #callOff = (): void => this.#ending.abort(this.#caller.reason);

  #endAfter(part: keyof FetchTimes): NodeJS.Timeout {
    const ms = this.#times[part];
    const fault = () => new FetchFault("timeout", `${failures[part]} within ${ms / 1_000} s`);
    return setTimeout(() => this.#ending.abort(fault()), ms);
  }
}
