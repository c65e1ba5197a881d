import { judge } from "../../workers/cdp-proxy/policy.ts";
import type { Verdict } from "../../workers/cdp-proxy/policy-rules.ts";

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
export function outcomeOf(method: string): Verdict["kind"] {
  return judge(
    method,
    () => params,
    () => scene,
  ).kind;
}
