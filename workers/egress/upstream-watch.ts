import { ProxyFailure, type ProxyFailureReason } from "./proxy-failure.ts";

/** Milliseconds. A proxy that locks accounts after wrong logins is asked once a minute at most. */
const times = { firstRetry: 1_000, longestRetry: 60_000 };

/** A change of what a proxy can do, as workers report it. */
export interface EgressChange {
  readonly capability: "verified" | "lost";
  /** Why it was lost; else empty. */
  readonly reason: ProxyFailureReason | "";
}

export interface UpstreamWatchOptions {
  /** Asks the proxy for a tunnel; fails with a ProxyFailure. */
  probe(signal: AbortSignal): Promise<void>;
  onChange(change: EgressChange): void;
}

/**
 * Notices the loss and the return of a proxy. Traffic that it carries is proof enough, and an idle session asks nothing.
 * A failure is a suspicion and a probe the judge, since one connection may fail for reasons of its site; while the proxy
 * is lost it is probed again, ever more rarely, until it or any traffic succeeds. One probe runs at a time.
 */
export class UpstreamWatch {
  readonly #options: UpstreamWatchOptions;
  readonly #closing = new AbortController();
  #capability: EgressChange["capability"] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isProbing = false;
  #probedAt = Number.NEGATIVE_INFINITY;
  #retry = times.firstRetry;

  constructor(options: UpstreamWatchOptions) {
    this.#options = options;
  }

  get isLost(): boolean {
    return this.#capability === "lost";
  }

  /** The proxy has done what it was asked for, or has refused it as a proxy that works does. */
  confirm(): void {
    this.#retry = times.firstRetry;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#become("verified", "");
  }

  /** Something went wrong that may be the proxy's fault. */
  suspect(): void {
    if (this.#isProbing || this.#timer || this.#closing.signal.aborted) return;
    this.#probeIn(Math.max(0, this.#probedAt + times.firstRetry - performance.now()));
  }

  /** Ends probing. */
  close(): void {
    this.#closing.abort();
    clearTimeout(this.#timer);
  }

  #probeIn(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#probe();
    }, ms);
  }

  async #probe(): Promise<void> {
    this.#isProbing = true;
    this.#probedAt = performance.now();
    try {
      await this.#options.probe(this.#closing.signal);
      this.confirm();
    } catch (error) {
      if (error instanceof ProxyFailure && error.isOfTarget) this.confirm();
      else this.#lose(error instanceof ProxyFailure ? error.reason : "unreachable");
    } finally {
      this.#isProbing = false;
    }
  }

  #lose(reason: ProxyFailureReason): void {
    if (this.#closing.signal.aborted) return;
    this.#become("lost", reason);
    this.#probeIn(this.#retry);
    this.#retry = Math.min(this.#retry * 2, times.longestRetry);
  }

  #become(capability: EgressChange["capability"], reason: EgressChange["reason"]): void {
    if (this.#capability === capability || this.#closing.signal.aborted) return;
    this.#capability = capability;
    this.#options.onChange({ capability, reason });
  }
}
