import type { Feature } from "../kernel/feature.ts";
import type { Brakes } from "./throttle.ts";

/** Milliseconds between deletions of expired attempts. */
const sweepEvery = 600_000;

export const brakes: Feature<{ readonly brakes: Brakes }> = {
  create: ({ brakes: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "failed to delete expired throttle attempts" }],
  }),
};
