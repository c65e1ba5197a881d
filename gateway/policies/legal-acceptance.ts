import { fail } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../call.ts";
import type { AdmissionPolicy, PolicyParts } from "./policy.ts";

/** Refuses who has not accepted the terms in force, but for the methods that one needs in order to do so. */
export const legalAcceptance: AdmissionPolicy = {
  name: "legal acceptance",
  enforces: ["beforeLegalAcceptance"],
  concerns: ({ rules }) => !rules.public && !rules.beforeLegalAcceptance,
  refuses: () => ["legal-acceptance-required"],
  admit: (call, { legal }) => (legal ? refuseOutstanding(call, legal) : undefined),
};

async function refuseOutstanding(call: GatewayCall, legal: NonNullable<PolicyParts["legal"]>): Promise<void> {
  const outstanding = await legal.outstanding(call.principal.accountId);
  if (!outstanding) return;
  const { revisionId, url } = outstanding;
  throw fail("legal-acceptance-required", { revision_id: revisionId, url });
}
