import type { Feature } from "../../kernel/feature.ts";
import type { Idempotency } from "./idempotency.ts";

/** Milliseconds between two deletions of answers that were kept long enough. */
const sweepEvery = 600_000;

export const idempotency: Feature<{ readonly idempotency: Idempotency }> = {
  create: ({ idempotency: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "kept answers cannot be swept at the moment" }],
  }),
};
