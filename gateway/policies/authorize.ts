import { fail } from "../../src/platform/errors.ts";
import type { GatewayCall } from "../call.ts";

/** Refuses a caller whose key lacks the method's scope. */
export function authorize(call: GatewayCall): void {
  const { rules } = call.served;
  if (!rules.public && rules.scope !== "" && !call.principal.scopes.has(rules.scope)) {
    throw fail("forbidden", {}, { detail: `the key lacks the scope ${rules.scope}` });
  }
}
