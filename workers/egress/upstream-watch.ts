import { ProxyFailure, type ProxyFailureReason } from "./proxy-failure.ts";

/**
 * Milliseconds. `firstRetry`: delay of the first retry, doubled at each retry, and minimum between probes.
 * `longestRetry`: longest delay. Some proxies lock accounts after failed logins.
 */
const times = { firstRetry: 1_000, longestRetry: 60_000 };

/** Capability change of a proxy, as workers report it. */
export interface EgressChange {
  readonly capability: "verified" | "lost";
  /** Reason for the loss. Empty unless `capability` is `lost`. */
  readonly reason: ProxyFailureReason | "";
}

export interface UpstreamWatchOptions {
  /** Requests a tunnel from the proxy. Rejects with a ProxyFailure. */
  probe(signal: AbortSignal): Promise<void>;
  onChange(change: EgressChange): void;
}

/**
 * Detects the loss and the return of a proxy. Successful traffic confirms the proxy, and idle sessions send no probes.
 * A failed connection starts a probe, because the site may be the cause. While the proxy is lost, probes repeat with
 * exponential backoff until a probe or other traffic succeeds. One probe runs at a time.
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

  /** Records that the proxy works. A refusal of one target counts as working. */
  confirm(): void {
    this.#retry = times.firstRetry;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#become("verified", "");
  }

  /** Schedules a probe after a failure that the proxy may have caused. */
  suspect(): void {
    if (this.#isProbing || this.#timer || this.#closing.signal.aborted) return;
    this.#probeIn(Math.max(0, this.#probedAt + times.firstRetry - performance.now()));
  }

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
