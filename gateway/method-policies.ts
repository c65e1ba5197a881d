import type { Message } from "@bufbuild/protobuf";
import type { ServedMethod, ServedService } from "../src/kernel/registry.ts";
import { errorTable } from "../src/platform/error-table.ts";
import { Failure } from "../src/platform/errors.ts";
import type { GatewayCall } from "./gateway-call.ts";
import { assertEnforced, policiesOf } from "./policies/index.ts";
import type { AdmissionPolicy, PolicyParts, RunPolicy } from "./policies/policy.ts";
import { rateLimits } from "./policies/rate-limits.ts";

/** A message, or a function that parses it. */
export type MessageSource = Message | (() => Message);

/** Runs the policies of all methods. */
export interface MethodPolicies {
  /** Runs all policies that need no message. Throws the failure of the first policy that refuses. */
  admit(call: GatewayCall): Promise<void>;
  check(served: ServedMethod, message: Message): void;
  /** Parses and checks a message. */
  read(served: ServedMethod, request: MessageSource): Message;
  /** Runs a unary method within the policies that wrap it. */
  run(call: GatewayCall, message: Message, method: () => Promise<Message>): Promise<Message>;
}

/** Policies of one method. */
interface OrderedPolicies {
  readonly admissions: readonly AdmissionPolicy[];
  /** Admission policies that run again after a fresh lookup of the bearer: those after the rate limits. */
  readonly rechecked: readonly AdmissionPolicy[];
  check(message: Message): void;
  run(call: GatewayCall, request: Message, run: () => Promise<Message>): Promise<Message>;
}

/**
 * Groups the policies of a method by kind, in the order of evaluation. Throws if no policy enforces one of the method's
 * options.
 */
function orderPolicies(served: ServedMethod, parts: PolicyParts): OrderedPolicies {
  assertEnforced(served);
  const own = policiesOf(served);
  const admissions = own.filter((policy) => "admit" in policy);
  const checks = own.filter((policy) => "check" in policy);
  const wrappers = own.filter((policy): policy is RunPolicy => "around" in policy);
  return {
    admissions,
    rechecked: admissions.slice(admissions.indexOf(rateLimits) + 1),
    check(message) {
      for (const policy of checks) policy.check(served, message);
    },
    run: (call, request, run) =>
      wrappers.reduceRight((inner, policy) => () => policy.around(call, request, inner, parts), run)(),
  };
}

/** Runs policies in order. Yields to the event loop only if a policy is asynchronous. */
async function admitBy(admissions: readonly AdmissionPolicy[], call: GatewayCall, parts: PolicyParts): Promise<void> {
  for (const policy of admissions) {
    const waiting = policy.admit(call, parts);
    if (waiting) await waiting;
  }
}

const isForbidden = (thrown: unknown): boolean => thrown instanceof Failure && errorTable[thrown.slug].status === 403;

/** Creates the policies of all methods of a registry. */
export function createMethodPolicies(services: readonly ServedService[], parts: PolicyParts): MethodPolicies {
  const policiesByMethod = new Map(
    services.flatMap(({ methods }) => methods.map((served) => [served, orderPolicies(served, parts)])),
  );

  function policiesFor(served: ServedMethod): OrderedPolicies {
    const policies = policiesByMethod.get(served);
    if (!policies) throw new Error(`${served.name} is not in this gateway's registry`);
    return policies;
  }

  const check = (served: ServedMethod, message: Message): void => policiesFor(served).check(message);

  return {
    async admit(call) {
      const { admissions, rechecked } = policiesFor(call.served);
      try {
        await call.within(() => admitBy(admissions, call, parts));
      } catch (thrown) {
        if (!isForbidden(thrown) || !call.bearer) throw thrown;
        // The bearer may have gained permissions since its last lookup.
        call.principal = await parts.bearers.lookUpFresh(call.bearer);
        await call.within(() => admitBy(rechecked, call, parts));
      }
    },
    check,
    read(served, request) {
      const message = typeof request === "function" ? request() : request;
      check(served, message);
      return message;
    },
    run: (call, message, method) => policiesFor(call.served).run(call, message, method),
  };
}
