import { formatTarget, type Target } from "../../src/platform/outgoing/address-rules.ts";
import { ProxyFailure } from "./proxy-failure.ts";

/** How many entries a journal keeps: a page that hammers a refused address must not grow the worker. */
const capacity = 256;

/** One request of a page that did not reach its target; times are milliseconds since 1970. */
export interface JournalEntry extends Target {
  at: number;
}

/** A request that failed on its way, with the name Chromium would have given to it without a relay in between. */
export interface EgressFailure extends JournalEntry {
  netError: string;
  /** What the session's proxy did, where it was at fault. */
  proxyFault?: string;
}

/** A bounded list of what lately did not reach its target, newest last. */
export class Journal<Entry extends JournalEntry> {
  readonly #entries: Entry[] = [];

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  add(entry: Entry): void {
    if (this.#entries.push(entry) > capacity) this.#entries.shift();
  }

  /** Gives the newest entry for a target that is not older than `since`. */
  find(target: Target, since: number): Entry | undefined {
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

/** Names a failed lookup or connection as Chromium does. */
export function netErrorOf(error: unknown): string {
  if (error instanceof ProxyFailure) return error.netError;
  // Several addresses tried in turn end in an AggregateError, whose first cause tells most.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && "code" in first ? String(first.code) : "";
  return netErrors[code] ?? "ERR_CONNECTION_FAILED";
}
