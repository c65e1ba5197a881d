import type { Feature } from "../kernel/feature.ts";
import type { Brakes } from "./throttle.ts";

/** Milliseconds between two looks for what counts no more. */
const sweepEvery = 600_000;

export const brakes: Feature<{ readonly brakes: Brakes }> = {
  create: ({ brakes: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "tries of the past cannot be swept at the moment" }],
  }),
};
