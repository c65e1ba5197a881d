import { waitUntil } from "../src/platform/bounded-wait.ts";
import type { FleetLink } from "./fleet/fleet-link.ts";
import type { SessionTable } from "./session/session-table.ts";

/** How often a draining worker looks whether its last session has ended, in milliseconds. */
const lookMs = 50;

/** What drains. */
export interface DrainParts {
  readonly sessions: SessionTable;
  readonly link: FleetLink;
}

/** Takes no new sessions, says so, and resolves when the last one has ended, `patience` is up or the signal aborts. */
export async function drain({ sessions, link }: DrainParts, patience: number, signal: AbortSignal): Promise<void> {
  sessions.isDraining = true;
  await link.sayNow();
  await waitUntil(() => signal.aborted || sessions.held.length === 0, { timeout: patience, every: lookMs });
}
