import { isFieldSet } from "@bufbuild/protobuf";
import { Idempotency, MethodRulesSchema } from "../../src/gen/pilothouse/v1/options_pb.ts";
import type { ServedMethod } from "../../src/kernel/registry.ts";
import { audit } from "./audit.ts";
import { authentication } from "./authentication.ts";
import { legalAcceptance } from "./legal-acceptance.ts";
import { noStore } from "./no-store.ts";
import { streamLimits } from "./open-streams.ts";
import { permission } from "./permission.ts";
import type { MethodOption, Policy, RunPolicy } from "./policy.ts";
import { rateLimits, rateLimitsOfRequest } from "./rate-limits.ts";
import { stepUp } from "./step-up.ts";
import { validation } from "./validation.ts";

/** Gives the answer that the same Idempotency-Key was given before. */
const idempotency: RunPolicy = {
  name: "idempotency",
  enforces: ["idempotency"],
  concerns: ({ keepsAnswers, rules }) => keepsAnswers || rules.idempotency === Idempotency.WORKER,
  refuses: ({ keepsAnswers }) => (keepsAnswers ? ["conflict"] : []),
  around: (call, request, run, { runOnce }) => runOnce(call, request, run),
};

/** What stands between a transport and the methods, in the order in which a call passes it. */
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
  audit,
  streamLimits,
];

/** The policies that a method's calls pass. */
export function policiesOf(served: ServedMethod): readonly Policy[] {
  return policies.filter((policy) => policy.concerns(served));
}

/** The options that are no policy's: what they say is done by transports, by the document and by what runs the method. */
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

/** Refuses a method with an option that nothing makes true: a promise that nobody keeps is worse than none. */
export function assertEnforced(served: ServedMethod, among: readonly Policy[] = policies): void {
  const enforced = new Set<string>([...enforcedElsewhere, ...among.flatMap(({ enforces }) => enforces)]);
  const broken = MethodRulesSchema.fields.find(
    (option) => isFieldSet(served.rules, option) && !enforced.has(option.localName),
  );
  if (broken) throw new Error(`${served.name}: nothing enforces its option ${broken.name}`);
}
