import { fail } from "../../src/platform/errors.ts";
import type { AdmissionPolicy } from "./policy.ts";

/**
 * Refuses a bearer that does not allow the client address or lacks the method's scope, and an API key if the method
 * requires a login. Refuses session tokens, connection tickets and file links for methods that do not accept them, and,
 * in a path or query, bearers of kinds that are not accepted there.
 */
export const permission: AdmissionPolicy = {
  name: "permission",
  enforces: ["scope", "loginOnly", "sessionBearer", "keyInAddress", "fileLink"],
  appliesTo: ({ rules }) => !rules.public,
  problems: () => ["forbidden"],
  describe({ rules: { scope, loginOnly, sessionBearer } }) {
    const sentences = [
      scope && `Needs the scope \`${scope}\`${sessionBearer ? ", or a token for the session" : ""}.`,
      loginOnly && "Requires a login; API keys are not accepted.",
    ];
    return sentences.filter(Boolean).join(" ");
  },
  admit(call) {
    const { scope, loginOnly, sessionBearer, keyInAddress, fileLink: acceptsLinks } = call.served.rules;
    const { kind, scopes, sessionId, ticketId, fileLink, allowsAddress } = call.principal;
    if (allowsAddress?.(call.clientAddress) === false) {
      throw fail(
        "forbidden",
        {},
        {
          detail: `the key does not allow the address ${call.clientAddress}: use an allowed address, or add ${call.clientAddress} to the key's \`addresses\``,
        },
      );
    }
    if (fileLink && !acceptsLinks) {
      throw fail("forbidden", {}, { detail: "a link to a file allows only reading or writing that file" });
    }
    if (sessionId !== undefined && !fileLink && !sessionBearer) {
      throw fail("forbidden", {}, { detail: "a session token allows only the methods of its session" });
    }
    if (ticketId !== undefined && !keyInAddress) {
      throw fail("forbidden", {}, { detail: "a connection ticket allows only connecting" });
    }
    if (call.hasBearerInPath && keyInAddress) {
      const prefix = call.bearer?.kind.prefix;
      if (prefix !== "phk_" && prefix !== "pht_")
        throw fail("forbidden", {}, { detail: "this address accepts only API keys, which begin with phk_" });
    } else if (call.hasBearerInPath && sessionId === undefined) {
      throw fail("forbidden", {}, { detail: "a path accepts only session tokens; send keys in Authorization" });
    }
    if (scope !== "" && !scopes.has(scope)) {
      throw fail(
        "forbidden",
        {},
        { detail: `the ${kind} lacks the scope ${scope}: use a ${kind} that has this scope` },
      );
    }
    if (loginOnly && kind !== "login") {
      throw fail(
        "forbidden",
        {},
        { detail: "this method requires a login; API keys are not accepted: post to /v1/auth/login" },
      );
    }
  },
};
