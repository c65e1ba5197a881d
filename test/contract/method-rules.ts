import { type DescField, type DescMethod, getOption, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence, MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { Idempotency, rules } from "../../src/gen/pilothouse/v1/options_pb.ts";
import { allScopes } from "../../src/identity/api-keys/scopes.ts";
import { isErrorSlug } from "../../src/platform/error-table.ts";
import type { Contract } from "./contract-image.ts";
import endpoints from "./endpoints.json" with { type: "json" };

/** The four rate-limit buckets of the interface, and the methods that each but `global` belongs to. */
const expectedBuckets: Readonly<Record<string, readonly string[]>> = {
  "sessions:create": ["POST /v1/sessions", "POST /v1/agent-sessions"],
  "agent_sessions:message": ["POST /v1/agent-sessions/{id}/message"],
  "agent_sessions:input_event": [
    "POST /v1/agent-sessions/{id}/input-event",
    "WebSocket /v1/agent-sessions/{agent_session_id}/stream",
  ],
};

/** What a login token of a user with a second factor may do only after a step-up. */
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
]);

/** The interface has them as GET, two as links in mails, but they change or make something. */
const changingGets = new Set([
  "/v1/agent-sessions/{id}/gui-control-key",
  "/v1/status/subscribe/confirm",
  "/v1/status/subscribe/unsubscribe",
]);

interface Route {
  readonly verb: string;
  readonly path: string;
  readonly body: string;
}

/** The door of a method beside gRPC and Connect: its REST route or its WebSocket. */
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

function doorOf(method: DescMethod): string {
  const route = routeOf(method);
  return route ? `${route.verb} ${route.path}` : "";
}

/** One fault per method of which `fault` says something. */
function eachMethod(contract: Contract, fault: (method: DescMethod) => string | false | undefined): string[] {
  return contract.methods.flatMap((method) => {
    const found = fault(method);
    return found ? [`${method}: ${found}`] : [];
  });
}

/** Every endpoint that was promised exists with that method and path, and no other. */
function promisedEndpoints(contract: Contract): string[] {
  const promised = new Set([...endpoints.interface, ...endpoints.decided]);
  const found = new Set(contract.methods.map(doorOf).filter((door) => door !== "" && !door.startsWith("WebSocket")));
  return [
    ...[...promised].filter((endpoint) => !found.has(endpoint)).map((endpoint) => `${endpoint} is missing`),
    ...[...found].filter((endpoint) => !promised.has(endpoint)).map((endpoint) => `${endpoint} was not promised`),
  ];
}

/** Every method has one door of its kind; what REST runs in place of another needs none. */
function oneDoor(contract: Contract): string[] {
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

/** GET and DELETE have no body; with the others the whole message is the body, or a field for bytes of any type. */
function bodies(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const route = routeOf(method);
    const expected = route && ["POST", "PUT", "PATCH"].includes(route.verb) ? "*" : "";
    const raw = method.input.fields.find(({ message }) => message?.typeName === "google.api.HttpBody")?.name;
    const isRaw = expected === "*" && route?.body === raw;
    return route && route.body !== expected && !isRaw && `${route.verb} with body "${route.body}"`;
  });
}

/** NO_SIDE_EFFECTS if and only if unary GET; the GETs that change something are IDEMPOTENT. */
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

/** What a path names is a singular string of the request that is always there. */
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

/** No two methods have the same door. */
function distinctRoutes(contract: Contract): string[] {
  const seen = new Map<string, DescMethod>();
  return eachMethod(contract, (method) => {
    const door = doorOf(method).replaceAll(/\{[^}]*\}/g, "{}");
    const earlier = seen.get(door);
    seen.set(door, method);
    return door !== "" && earlier && `has the route of ${earlier.name}`;
  });
}

/** Scopes are of the known set; public methods have none, and no step-up. */
function knownScopes(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { scope, public: isPublic, stepUp } = getOption(method, rules);
    if (isPublic) return (scope !== "" || stepUp) && "is public and asks for a scope or a step-up";
    return scope !== "" && !allScopes.includes(scope) && `scope ${scope} is not in src/identity/api-keys/scopes.ts`;
  });
}

/** A step-up is asked for where it was decided, and nowhere else; it names its slug. */
function stepUps(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { errors, stepUp } = getOption(method, rules);
    if (stepUp !== expectedStepUps.has(doorOf(method))) return `step_up is ${stepUp}`;
    return errors.includes("mfa-step-up-required") !== stepUp && "step_up and mfa-step-up-required do not agree";
  });
}

/** Before the terms are accepted auth, legal and the caller's own record are served, and nothing else. */
function beforeAcceptance(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { beforeLegalAcceptance, public: isPublic } = getOption(method, rules);
    const expected = !isPublic && /^(\S+ \/v1\/(auth|legal)\/|GET \/v1\/account\/me$)/.test(doorOf(method));
    return beforeLegalAcceptance !== expected && `before_legal_acceptance is ${beforeLegalAcceptance}`;
  });
}

/** Buckets are those of the interface, on the methods that it names. */
function knownBuckets(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { buckets } = getOption(method, rules);
    const unknown = buckets.find((bucket) => !Object.hasOwn(expectedBuckets, bucket));
    const expected = Object.keys(expectedBuckets).filter((bucket) => expectedBuckets[bucket]?.includes(doorOf(method)));
    return unknown !== undefined
      ? `bucket ${unknown} is not known`
      : buckets.join() !== expected.join() && `buckets are [${buckets}] and not [${expected}]`;
  });
}

/** Every slug that a method names is in the error table, and named once. */
function knownErrors(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { errors } = getOption(method, rules);
    const unknown = errors.find((slug) => !isErrorSlug(slug));
    return unknown !== undefined
      ? `slug ${unknown} is not in the error table`
      : new Set(errors).size < errors.length && "names a slug twice";
  });
}

/** What keeps its answers for an Idempotency-Key can answer `conflict`: the key with another body, or still running. */
function idempotencyConflicts(contract: Contract): string[] {
  return eachMethod(contract, (method) => {
    const { errors, idempotency, public: isPublic } = getOption(method, rules);
    const keeps = doorOf(method).startsWith("POST ") && !isPublic && idempotency !== Idempotency.IGNORED;
    return keeps && !errors.includes("conflict") && "keeps answers and does not name conflict";
  });
}

/** 204 if and only if nothing is answered; no status but those of success that the contract uses. */
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

/** The rules that look at methods and their options. */
export const methodRules = {
  promisedEndpoints,
  oneDoor,
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
