import { waitUntil } from "../src/platform/bounded-wait.ts";
import type { FleetLink } from "./fleet/fleet-link.ts";
import type { SessionTable } from "./session/session-table.ts";

/** Milliseconds between checks for the end of the last session. */
const pollMs = 50;

export interface DrainParts {
  readonly sessions: SessionTable;
  readonly link: FleetLink;
}

/**
 * Refuses new sessions. Resolves when the last session has ended, `patience` milliseconds have passed, or the signal
 * aborts.
 */
export async function drain({ sessions, link }: DrainParts, patience: number, signal: AbortSignal): Promise<void> {
  sessions.isDraining = true;
  await link.sayNow();
  await waitUntil(() => signal.aborted || sessions.held.length === 0, { timeout: patience, every: pollMs });
}
