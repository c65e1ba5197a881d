import type { Feature } from "../feature.ts";
import { type LapseParts, lapseJob } from "./lapse-job.ts";

export const control = {
  create: (parts: LapseParts) => ({ jobs: [lapseJob(parts)] }),
} satisfies Feature<LapseParts>;
