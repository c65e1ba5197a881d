import type { AdmissionPolicy } from "./policy.ts";

/** Keeps answers that hold secrets out of every cache. It comes first, so that refusals say so too. */
export const noStore: AdmissionPolicy = {
  name: "no-store",
  enforces: ["noStore"],
  concerns: ({ rules, answersSecrets }) => rules.noStore || answersSecrets,
  refuses: () => [],
  admit: (call) => call.setHeader("cache-control", "no-store"),
};
