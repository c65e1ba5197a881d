import type { Feature } from "../kernel/feature.ts";
import type { Throttles } from "./throttle.ts";

/** Milliseconds between deletions of expired attempts. */
const sweepEvery = 600_000;

export const throttles: Feature<{ readonly throttles: Throttles }> = {
  create: ({ throttles: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "failed to delete expired throttle attempts" }],
  }),
};
