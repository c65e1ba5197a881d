import type { Feature } from "../kernel/feature.ts";
import { sweepTask } from "../platform/sweep-task.ts";
import type { Throttles } from "./throttle.ts";

export const throttles: Feature<{ readonly throttles: Throttles }> = {
  create: ({ throttles: { sweep } }) => ({
    jobs: [sweepTask(sweep, "failed to delete expired throttle attempts")],
  }),
};
