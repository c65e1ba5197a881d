import type { Feature } from "../../kernel/feature.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import { sweepTickets, ticketBearers } from "./tickets.ts";

export const connectTickets: Feature<{ readonly db: Database }> = {
  bearers: ticketBearers,
  create: ({ db }) => ({
    jobs: [sweepTask(() => sweepTickets(db), "failed to sweep connection tickets")],
  }),
};
