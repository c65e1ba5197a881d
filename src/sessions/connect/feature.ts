import type { Feature } from "../../kernel/feature.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { sweepTickets, ticketBearers } from "./tickets.ts";

/** Milliseconds between sweeps of old tickets. */
const sweepEvery = 600_000;

export const connectTickets: Feature<{ readonly db: Database }> = {
  bearers: ticketBearers,
  create: ({ db }) => ({
    jobs: [{ run: () => sweepTickets(db), every: sweepEvery, complaint: "failed to sweep connection tickets" }],
  }),
};
