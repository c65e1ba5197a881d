import { type DescField, type DescMethod, getOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { Idempotency, rules } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { allScopes } from "../../src/identity/api-keys/scopes.ts";
import { isErrorSlug } from "../../src/platform/error-table.ts";
import type { Contract } from "./contract-image.ts";
import endpoints from "./endpoints.json" with { type: "json" };

/** Rate limit buckets of the interface other than `global`, with their methods. */
const expectedBuckets: Readonly<Record<string, readonly string[]>> = {
  "sessions:create": ["POST /v1/sessions", "POST /v1/agent-sessions", "WebSocket /connect"],
  "agent_sessions:message": ["POST /v1/agent-sessions/{id}/message"],
  "agent_sessions:input_event": [
    "POST /v1/agent-sessions/{id}/input-event",
    "WebSocket /v1/agent-sessions/{agent_session_id}/stream",
  ],
};

/** Methods that a user with a second factor may call only after a step-up. */
const expectedStepUps = new Set([
  "POST /v1/api-keys",
  "POST /v1/api-keys/{id}/rotate",
  "DELETE /v1/api-keys/{id}",
  "POST /v1/webhooks/{id}/rotate-secret",
  "PUT /v1/account/me/byok-llm-key",
  "POST /v1/team/invites",
  "PATCH /v1/team/members/{id}",
  "DELETE /v1/team/members/{id}",
  "POST /v1/billing/checkout-session",
  "POST /v1/billing/portal-session",
  "DELETE /v1/auth/mfa/totp",
  "DELETE /v1/account/logins/{id}",
  "POST /v1/auth/password/change",
  "POST /v1/auth/account/delete",
  "POST /v1/auth/email-change/request",
  "GET /v1/profiles/{id}/storage-state",
  "PUT /v1/profiles/{id}/storage-state",
]);

/** GET methods with side effects. The interface defines them as GET; two are links in e-mails, one is only audited. */
const changingGets = new Set([
  "/v1/profiles/{id}/storage-state",
  "/v1/agent-sessions/{id}/gui-control-key",
  "/v1/status/subscribe/confirm",
  "/v1/status/subscribe/unsubscribe",
]);

interface Route {
  readonly verb: string;
  readonly path: string;
  readonly body: string;
}

/** Returns the REST route or the WebSocket of a method. */
function routeOf(method: DescMethod): Route | undefined {
  const { pattern, body } = getOption(method, http);
  const { websocket } = getOption(method, rules);
  if (pattern.case === undefined) {
    return websocket === "" ? undefined : { verb: "WebSocket", path: websocket, body: "" };
  }
  return pattern.case === "custom"
    ? { verb: pattern.value.kind, path: pattern.value.path, body }
    : { verb: pattern.case.toUpperCase(), path: pattern.value, body };
}

function endpointOf(method: DescMethod): string {
  const route = routeOf(method);
  return route ? `${route.verb} ${route.path}` : "";
}

/** Returns one fault per method for which `fault` returns a text. */
function eachMethod(contract: Contract, fault: (method: DescMethod) => string | false | undefined): string[] {
  return contract.methods.flatMap((method) => {
    const found = fault(method);
    return found ? [`${method}: ${found}`] : [];
  });
}

/** Exactly the promised endpoints must exist, with their methods and paths. */
function promisedEndpoints(contract: Contract): string[] {
  const promised = new Set([...endpoints.interface, ...endpoints.decided]);
  const found = new Set(
    contract.methods.map(endpointOf).filter((transport) => transport !== "" && !transport.startsWith("WebSocket")),
  );
  return [
    ...[...promised].filter((endpoint) => !found.has(endpoint)).map((endpoint) => `${endpoint} is missing`),
    ...[...found].filter((endpoint) => !promised.has(endpoint)).map((endpoint) => `${endpoint} was not promised`),
  ];
}

/** Every method must have one route of its kind. Streaming variants of a REST method need none. */
function oneRoute(contract: Contract): string[] {
  const streams = new Set(
    contract.methods.map((method) => `${method.parent.typeName}.${getOption(method, rules).streamedBy}`),
  );
  return eachMethod(contract, (method) => {
    const hasHttp = getOption(method, http).pattern.case !== undefined;
    const hasWebsocket = getOption(method, rules).websocket !== "";
    if (method.methodKind === "bidi_streaming") {
      return (hasHttp || !hasWebsocket) && "needs a websocket path and no http rule";
    }
    const wantsHttp = !streams.has(`${method.parent.typeName}.${method.name}`);
    return (
      (hasWebsocket || hasHttp !== wantsHttp) && `needs ${wantsHttp ? "an" : "no"} http rule and no websocket path`
    );
  });
}

/** GET and DELETE must not have a body. Other methods must take the whole message, or a field for raw bytes. */
function bodies(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const route = routeOf(method);
    const expected = route && ["POST", "PUT", "PATCH"].includes(route.verb) ? "*" : "";
    const raw = method.input.fields.find(({ message }) => message?.typeName === "google.api.HttpBody")?.name;
    const isRaw = expected === "*" && route?.body === raw;
    return route && route.body !== expected && !isRaw && `${route.verb} with body "${route.body}"`;
  });
}

/** Exactly the unary GETs must be NO_SIDE_EFFECTS. GETs with side effects must be IDEMPOTENT. */
function sideEffects(contract: Contract): string[] {
  const { NO_SIDE_EFFECTS, IDEMPOTENT, IDEMPOTENCY_UNKNOWN } = MethodOptions_IdempotencyLevel;
  return eachMethod(contract, (method) => {
    const route = routeOf(method);
    const isGet = route?.verb === "GET" && method.methodKind === "unary";
    const changes = route !== undefined && changingGets.has(route.path);
    const expected = isGet ? (changes ? IDEMPOTENT : NO_SIDE_EFFECTS) : IDEMPOTENCY_UNKNOWN;
    return method.idempotency !== expected && `idempotency_level is not ${MethodOptions_IdempotencyLevel[expected]}`;
  });
}

/** Path variables must be singular, always present strings of the request. */
function pathVariables(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const names = [...(routeOf(method)?.path ?? "").matchAll(/\{([^}]*)\}/g)].map((match) => match[1]);
    const wrong = names.find((name) => !isPlainString(method.input.fields.find((field) => field.name === name)));
    return wrong !== undefined && `{${wrong}} is not a singular string of ${method.input.name}`;
  });
}

function isPlainString(field: DescField | undefined): boolean {
  return (
    field?.fieldKind === "scalar" &&
    field.scalar === ScalarType.STRING &&
    field.presence === FeatureSet_FieldPresence.IMPLICIT
  );
}

/** No two methods may have the same route. */
function distinctRoutes(contract: Contract): string[] {
  const seen = new Map<string, DescMethod>();
  return eachMethod(contract, (method) => {
    const transport = endpointOf(method).replaceAll(/\{[^}]*\}/g, "{}");
    const earlier = seen.get(transport);
    seen.set(transport, method);
    return transport !== "" && earlier && `has the route of ${earlier.name}`;
  });
}

/** Scopes must be known. Public methods must not have a scope or a step-up. */
function knownScopes(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { scope, public: isPublic, stepUp } = getOption(method, rules);
    if (isPublic) return (scope !== "" || stepUp) && "is public and asks for a scope or a step-up";
    return scope !== "" && !allScopes.includes(scope) && `scope ${scope} is not in src/identity/api-keys/scopes.ts`;
  });
}

/** Exactly the decided methods must need a step-up and list its slug. */
function stepUps(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { errors, stepUp } = getOption(method, rules);
    if (stepUp !== expectedStepUps.has(endpointOf(method))) return `step_up is ${stepUp}`;
    return errors.includes("mfa-step-up-required") !== stepUp && "step_up and mfa-step-up-required do not agree";
  });
}

/** Only auth, legal and the caller's own record may be available before the terms are accepted. */
function beforeAcceptance(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { beforeLegalAcceptance, public: isPublic } = getOption(method, rules);
    const expected = !isPublic && /^(\S+ \/v1\/(auth|legal)\/|GET \/v1\/account\/me$)/.test(endpointOf(method));
    return beforeLegalAcceptance !== expected && `before_legal_acceptance is ${beforeLegalAcceptance}`;
  });
}

/** Buckets must be those of the interface, on the methods that it names. */
function knownBuckets(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { buckets } = getOption(method, rules);
    const unknown = buckets.find((bucket) => !Object.hasOwn(expectedBuckets, bucket));
    const expected = Object.keys(expectedBuckets).filter((bucket) =>
      expectedBuckets[bucket]?.includes(endpointOf(method)),
    );
    return unknown !== undefined
      ? `bucket ${unknown} is not known`
      : buckets.join() !== expected.join() && `buckets are [${buckets}] and not [${expected}]`;
  });
}

/** Every slug of a method must be in the error table and listed once. */
function knownErrors(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { errors } = getOption(method, rules);
    const unknown = errors.find((slug) => !isErrorSlug(slug));
    return unknown !== undefined
      ? `slug ${unknown} is not in the error table`
      : new Set(errors).size < errors.length && "names a slug twice";
  });
}

/** Methods that store responses by Idempotency-Key must list `conflict`, for a different body or a running request. */
function idempotencyConflicts(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { errors, idempotency, public: isPublic } = getOption(method, rules);
    const keeps = endpointOf(method).startsWith("POST ") && !isPublic && idempotency !== Idempotency.IGNORED;
    return keeps && !errors.includes("conflict") && "keeps answers and does not name conflict";
  });
}

/** Exactly the empty responses must have status 204. Others must have 200, 201 or 202. */
function successStatus(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { successStatus: status, createdStatus } = getOption(method, rules);
    const isEmpty = method.output.typeName === "google.protobuf.Empty";
    if (createdStatus !== 0 && (createdStatus !== 201 || routeOf(method)?.verb !== "PUT" || isEmpty))
      return `answers ${method.output.name} with created_status ${createdStatus}`;
    return (
      (isEmpty !== (status === 204) || ![0, 201, 202, 204].includes(status)) &&
      `answers ${method.output.name} with status ${status}`
    );
  });
}

export const methodRules = {
  promisedEndpoints,
  oneRoute,
  bodies,
  sideEffects,
  pathVariables,
  distinctRoutes,
  knownScopes,
  stepUps,
  beforeAcceptance,
  knownBuckets,
  knownErrors,
  idempotencyConflicts,
  successStatus,
};
