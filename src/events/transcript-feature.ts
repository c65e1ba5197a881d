import type { Feature } from "../kernel/feature.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { deleteInBatches, sweepTask } from "../platform/sweep-task.ts";
import { deleteOldEntries } from "./transcript.ts";

/** Retention in milliseconds. */
const keptFor = 90 * 86_400_000;

export const transcript: Feature<Pick<PlatformParts, "db" | "clock">> = {
  create: ({ db, clock }) => ({
    jobs: [
      sweepTask(async () => {
        const before = new Date(clock.now() - keptFor);
        await deleteInBatches((limit) => deleteOldEntries(db, before, limit));
      }, "failed to delete old transcript entries"),
    ],
  }),
};
