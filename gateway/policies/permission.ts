import { fail } from "../../src/platform/errors.ts";
import type { AdmissionPolicy } from "./policy.ts";

/** Refuses a caller whose bearer lacks the method's scope, and a program where only a person may act. */
export const permission: AdmissionPolicy = {
  name: "permission",
  enforces: ["scope", "loginOnly"],
  concerns: ({ rules }) => rules.scope !== "" || rules.loginOnly,
  refuses: () => ["forbidden"],
  tells({ rules: { scope, loginOnly } }) {
    const sentences = [
      scope && `Needs the scope \`${scope}\`.`,
      loginOnly && "Takes no API key: a person has to log in.",
    ];
    return sentences.filter(Boolean).join(" ");
  },
  admit(call) {
    const { scope, loginOnly } = call.served.rules;
    const { kind, scopes } = call.principal;
    if (scope !== "" && !scopes.has(scope)) {
      throw fail("forbidden", {}, { detail: `the ${kind} lacks the scope ${scope}` });
    }
    if (loginOnly && kind !== "login") {
      throw fail("forbidden", {}, { detail: "a person has to log in for this: an API key may not do it" });
    }
  },
};
