import { decideCommand } from "../../workers/cdp-proxy/command-policy.ts";
import type { PolicyDecision } from "../../workers/cdp-proxy/policy-rules.ts";

/** Parameters that no rule refuses. */
const params = { flatten: true, browserContextId: "own", url: "https://example.com/" };

const scene = {
  isBrowserSession: false,
  ownsContext: () => true,
  hidesPages: true,
  pages: 1,
  fileOf: () => undefined,
};

/** Returns the policy's verdict on a method whose parameters are all allowed. */
export function outcomeOf(method: string): PolicyDecision["kind"] {
  return decideCommand(
    method,
    () => params,
    () => scene,
  ).kind;
}
