import type { Feature } from "../../kernel/feature.ts";
import type { Idempotency } from "./idempotency.ts";

/** Milliseconds between deletions of expired responses. */
const sweepEvery = 600_000;

export const idempotency: Feature<{ readonly idempotency: Idempotency }> = {
  create: ({ idempotency: { sweep } }) => ({
    jobs: [{ run: sweep, every: sweepEvery, complaint: "failed to delete old idempotent responses" }],
  }),
};
