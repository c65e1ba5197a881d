import { fail } from "../../src/platform/errors.ts";
import type { AdmissionPolicy } from "./policy.ts";

/**
 * Refuses a caller whose bearer is not good from its address, or lacks the method's scope, a program where only a person
 * may act, a token that was made for a session everywhere else, and in a path all others.
 */
export const permission: AdmissionPolicy = {
  name: "permission",
  enforces: ["scope", "loginOnly", "sessionBearer"],
  concerns: ({ rules }) => !rules.public,
  refuses: () => ["forbidden"],
  tells({ rules: { scope, loginOnly, sessionBearer } }) {
    const sentences = [
      scope && `Needs the scope \`${scope}\`${sessionBearer ? ", or a token for the session" : ""}.`,
      loginOnly && "Takes no API key: a person has to log in.",
    ];
    return sentences.filter(Boolean).join(" ");
  },
  admit(call) {
    const { scope, loginOnly, sessionBearer } = call.served.rules;
    const { kind, scopes, sessionId, allowsAddress } = call.principal;
    if (allowsAddress?.(call.clientAddress) === false) {
      throw fail("forbidden", {}, { detail: `the ${kind} is not good from the address ${call.clientAddress}` });
    }
    if (sessionId !== undefined && !sessionBearer) {
      throw fail("forbidden", {}, { detail: "the token is good for what it was made for in its session alone" });
    }
    if (call.showsInPath && sessionId === undefined) {
      throw fail("forbidden", {}, { detail: "a path takes a token for its session alone: send keys in Authorization" });
    }
    if (scope !== "" && !scopes.has(scope)) {
      throw fail("forbidden", {}, { detail: `the ${kind} lacks the scope ${scope}` });
    }
    if (loginOnly && kind !== "login") {
      throw fail("forbidden", {}, { detail: "a person has to log in for this: an API key may not do it" });
    }
  },
};
