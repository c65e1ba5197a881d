import type { AdmissionPolicy } from "./policy.ts";

/** Keeps responses with secrets out of caches. Runs as the first policy, so that refusals have the header too. */
export const noStore: AdmissionPolicy = {
  name: "no-store",
  enforces: ["noStore"],
  appliesTo: ({ rules, answersSecrets }) => rules.noStore || answersSecrets,
  problems: () => [],
  admit: (call) => call.setHeader("cache-control", "no-store"),
};
