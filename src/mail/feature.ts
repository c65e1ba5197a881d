import type { Feature } from "../kernel/feature.ts";
import type { Mailer } from "./mailer.ts";

export const mail: Feature<{ readonly mailer: Mailer }> = {
  create: ({ mailer: { jobKinds, jobs } }) => ({ jobKinds, jobs }),
};
