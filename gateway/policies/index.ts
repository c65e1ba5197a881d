import { isFieldSet } from "@bufbuild/protobuf";
import { Idempotency, MethodRulesSchema } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { auditPolicy } from "./audit.ts";
import { authentication } from "./authentication.ts";
import { legalAcceptance } from "./legal-acceptance.ts";
import { noStore } from "./no-store.ts";
import { streamLimits } from "./open-streams.ts";
import { permission } from "./permission.ts";
import type { MethodOption, Policy, RunPolicy } from "./policy.ts";
import { rateLimits, rateLimitsOfRequest } from "./rate-limits.ts";
import { stepUp } from "./step-up.ts";
import { validation } from "./validation-policy.ts";

/** Returns the stored response of a repeated Idempotency-Key. */
const idempotency: RunPolicy = {
  name: "idempotency",
  enforces: ["idempotency"],
  appliesTo: ({ keepsAnswers, rules }) => keepsAnswers || rules.idempotency === Idempotency.WORKER,
  problems: ({ keepsAnswers }) => (keepsAnswers ? ["conflict"] : []),
  around: (call, request, run, { runOnce }) => runOnce(call, request, run),
};

/** Policies between transports and methods, in the order of evaluation. */
export const policies: readonly Policy[] = [
  noStore,
  authentication,
  rateLimits,
  legalAcceptance,
  permission,
  stepUp,
  validation,
  rateLimitsOfRequest,
  idempotency,
  auditPolicy,
  streamLimits,
];

/** Returns the policies that apply to a method. */
export function policiesOf(served: ServedMethod): readonly Policy[] {
  return policies.filter((policy) => policy.appliesTo(served));
}

/** Options that are not enforced by policies, but used by transports, the OpenAPI document or services. */
const enforcedElsewhere: readonly MethodOption[] = [
  "successStatus",
  "createdStatus",
  "websocket",
  "maxMessageBytes",
  "maxBodyBytes",
  "attachment",
  "websocketBinary",
  "streamedBy",
  "formBody",
  "errors",
  "runsToCompletion",
  "relay",
  "duplex",
  "grants",
  "mediaTypes",
  "headers",
];

/** Throws if no policy enforces one of a method's options, and `enforcedElsewhere` does not contain the option. */
export function assertEnforced(served: ServedMethod, among: readonly Policy[] = policies): void {
  const enforced = new Set<string>([...enforcedElsewhere, ...among.flatMap(({ enforces }) => enforces)]);
  const broken = MethodRulesSchema.fields.find(
    (option) => isFieldSet(served.rules, option) && !enforced.has(option.localName),
  );
  if (broken) throw new Error(`${served.name}: no policy enforces the option ${broken.name}`);
}
