import type { Feature } from "../feature.ts";
import type { EventLog } from "./event-log.ts";
import { eventMigrations } from "./tables.ts";

/** Milliseconds between two deletions of old events. */
const sweepEvery = 600_000;

export const events: Feature<{ readonly events: EventLog }> = {
  migrations: eventMigrations,
  create: ({ events: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "old events cannot be deleted at the moment" }],
  }),
};
