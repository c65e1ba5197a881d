import { waitUntil } from "../src/platform/bounded-wait.ts";
import type { FetchBrowsers } from "./fetch/fetch-browsers.ts";
import type { FleetLink } from "./fleet/fleet-link.ts";
import type { SessionTable } from "./session/session-table.ts";

/** Milliseconds between checks for the end of the last session. */
const pollMs = 50;

export interface DrainParts {
  readonly sessions: SessionTable;
  readonly fetches: FetchBrowsers;
  readonly link: FleetLink;
}

/**
 * Refuses new sessions and fetches. Resolves when all sessions and fetches have ended, after `timeoutMs`, or when the
 * signal aborts.
 */
export async function drain(
  { sessions, fetches, link }: DrainParts,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  sessions.drain(timeoutMs);
  await link.sendHeartbeat();
  const isEmpty = (): boolean => sessions.held.length === 0 && fetches.busy === 0;
  await waitUntil(() => signal.aborted || isEmpty(), { timeout: timeoutMs, every: pollMs });
}
