import { steppedUpFor } from "../../src/kernel/call.ts";
import { fail } from "../../src/platform/errors.ts";
import type { AdmissionPolicy } from "./policy.ts";

/** Requires a recent step-up from logins of users with a second factor. API keys are exempt. */
export const stepUp: AdmissionPolicy = {
  name: "step-up",
  enforces: ["stepUp"],
  appliesTo: ({ rules }) => rules.stepUp,
  problems: () => ["mfa-step-up-required"],
  describe: () => "Login tokens of users with a second factor need a step-up within the last 10 minutes.",
  admit({ principal }, { clock }) {
    if (principal.kind !== "login" || !principal.hasSecondFactor) return;
    const { steppedUpAt } = principal;
    if (steppedUpAt === undefined || clock.now() - steppedUpAt >= steppedUpFor) {
      const detail =
        "the login has shown no second factor within 10 minutes: post a code to /v1/auth/mfa/step-up, and try again";
      throw fail("mfa-step-up-required", { requires_mfa_step_up: true }, { detail });
    }
  },
};
