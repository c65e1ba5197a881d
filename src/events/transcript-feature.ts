import type { Feature } from "../kernel/feature.ts";
import type { Clock } from "../platform/clock.ts";
import type { Database } from "../platform/postgres/database.ts";
import { deleteOldEntries } from "./transcript.ts";

/** How long entries are kept, in milliseconds, and how many are deleted with one statement. */
const retention = { ms: 90 * 86_400_000, batch: 1_000 };

export const transcript: Feature<{ readonly db: Database; readonly clock: Clock }> = {
  create: ({ db, clock }) => ({
    jobs: [
      {
        async run() {
          const before = new Date(clock.now() - retention.ms);
          while ((await deleteOldEntries(db, before, retention.batch)) === retention.batch);
        },
        every: 600_000,
        complaint: "old entries of transcripts cannot be deleted at the moment",
      },
    ],
  }),
};
