import type { Feature } from "../../kernel/feature.ts";
import { sweepTask } from "../../platform/sweep-task.ts";
import type { Idempotency } from "./idempotency.ts";

export const idempotency: Feature<{ readonly idempotency: Idempotency }> = {
  create: ({ idempotency: { sweep } }) => ({
    jobs: [sweepTask(sweep, "failed to delete old idempotent responses")],
  }),
};
