import type { Feature } from "../kernel/feature.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { deleteOldEntries } from "./transcript.ts";

/** Retention in milliseconds, and maximum number of entries per delete statement. */
const retention = { ms: 90 * 86_400_000, batch: 1_000 };

export const transcript: Feature<Pick<PlatformParts, "db" | "clock">> = {
  create: ({ db, clock }) => ({
    jobs: [
      {
        async run() {
          const before = new Date(clock.now() - retention.ms);
          while ((await deleteOldEntries(db, before, retention.batch)) === retention.batch);
        },
        every: 600_000,
        complaint: "failed to delete old transcript entries",
      },
    ],
  }),
};
