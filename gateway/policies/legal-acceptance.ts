import type { OutstandingTerms } from "../../src/kernel/call.ts";
import { fail } from "../../src/platform/errors.ts";
import type { AdmissionPolicy } from "./policy.ts";

/**
 * Refuses callers whose account has not accepted the terms in force, except for the methods needed to accept the terms.
 */
export const legalAcceptance: AdmissionPolicy = {
  name: "legal acceptance",
  enforces: ["beforeLegalAcceptance"],
  appliesTo: ({ rules }) => !rules.public && !rules.beforeLegalAcceptance,
  problems: () => ["legal-acceptance-required"],
  admit: (call, { legal }) => legal.outstanding(call.principal.accountId)?.then(refuseOutstanding),
};

function refuseOutstanding(outstanding: OutstandingTerms | undefined): void {
  if (!outstanding) return;
  const { revisionId, url } = outstanding;
  const detail = `new terms are in force: read ${url}, post {"revision_id":"${revisionId}"} to /v1/legal/accept, and try again`;
  throw fail("legal-acceptance-required", { revision_id: revisionId, url }, { detail });
}
