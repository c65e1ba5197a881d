import { formatTarget, type HostPort } from "../../src/platform/outgoing/address-rules.ts";
import { ProxyFailure } from "./proxy-failure.ts";

/** Entries kept per journal. Bounds memory if a page repeats refused requests. */
const capacity = 256;

/** A page request that did not reach its target. `at` is in milliseconds since 1970. */
export interface JournalEntry extends HostPort {
  at: number;
}

/** A failed request, with the error name that Chromium would report without a relay. */
export interface EgressFailure extends JournalEntry {
  netError: string;
  /** Description of the proxy's fault, if the session's proxy caused the failure. */
  proxyFault?: string;
}

/** Bounded list of recent requests that did not reach their target, newest last. */
export class Journal<Entry extends JournalEntry> {
  readonly #entries: Entry[] = [];

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  add(entry: Entry): void {
    if (this.#entries.push(entry) > capacity) this.#entries.shift();
  }

  /** Returns the newest entry for a target at or after `since`. */
  find(target: HostPort, since: number): Entry | undefined {
    const wanted = formatTarget(target);
    return this.#entries.findLast((entry) => entry.at >= since && formatTarget(entry) === wanted);
  }
}

const netErrors: Record<string, string> = {
  ENOTFOUND: "ERR_NAME_NOT_RESOLVED",
  EAI_AGAIN: "ERR_NAME_NOT_RESOLVED",
  ECONNREFUSED: "ERR_CONNECTION_REFUSED",
  ECONNRESET: "ERR_CONNECTION_RESET",
  EPIPE: "ERR_CONNECTION_RESET",
  ETIMEDOUT: "ERR_CONNECTION_TIMED_OUT",
  EHOSTUNREACH: "ERR_ADDRESS_UNREACHABLE",
  ENETUNREACH: "ERR_ADDRESS_UNREACHABLE",
  EADDRNOTAVAIL: "ERR_ADDRESS_INVALID",
};

/** Returns Chromium's name for a failed lookup or connection. */
export function netErrorName(error: unknown): string {
  if (error instanceof ProxyFailure) return error.netError;
  // If several addresses fail, Node throws an AggregateError. Its first error is the most specific.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && "code" in first ? String(first.code) : "";
  return netErrors[code] ?? "ERR_CONNECTION_FAILED";
}
