/**
 * All errors of the service, in one table. A failure is thrown with `fail(slug, ...)` anywhere, and becomes a problem
 * document (RFC 9457) on REST and WebSocket, or a status with google.rpc details on Connect and gRPC, in one place each.
 */

/** The numbers of google.rpc.Code that the table uses; Connect and gRPC share them. */
const code = {
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  alreadyExists: 6,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

interface ErrorKind {
  /** HTTP status. */
  readonly status: number;
  /** google.rpc.Code. */
  readonly code: number;
  /** The problem's title. */
  readonly title: string;
  /** One sentence for the error's page: when it happens and what to do. */
  readonly about: string;
}

/** Slug to status, code, title and explanation. Slugs are part of the contract and never renamed. */
export const errorTable = {
  "bad-request": {
    status: 400,
    code: code.invalidArgument,
    title: "Bad request",
    about: "The request contradicts a rule of the service, such as a URL that does not parse. Change the request.",
  },
  "validation-failed": {
    status: 400,
    code: code.invalidArgument,
    title: "Validation failed",
    about: "Body or parameters do not have the documented shape. `detail` names the field, `errors` lists all faults.",
  },
  unauthorized: {
    status: 401,
    code: code.unauthenticated,
    title: "Unauthorized",
    about: "The Authorization header is missing or is not `Bearer <key>`.",
  },
  "invalid-key": {
    status: 401,
    code: code.unauthenticated,
    title: "Invalid key",
    about: "The key is malformed or unknown.",
  },
  "revoked-key": {
    status: 401,
    code: code.unauthenticated,
    title: "Revoked key",
    about: "The key was revoked, by hand or after its rotation's grace time.",
  },
  "expired-key": {
    status: 401,
    code: code.unauthenticated,
    title: "Expired key",
    about: "The key is past its `expires_at`. Use the key that replaced it.",
  },
  "invalid-auth-token": {
    status: 401,
    code: code.unauthenticated,
    title: "Invalid token",
    about: "A sign-up, magic-link or password-reset token is malformed, used or expired. Ask for a new one.",
  },
  "email-not-verified": {
    status: 401,
    code: code.unauthenticated,
    title: "E-mail not verified",
    about: "The e-mail address has to be verified before the first login.",
  },
  "invalid-credentials": {
    status: 401,
    code: code.unauthenticated,
    title: "Invalid credentials",
    about: "Wrong password, or no such account.",
  },
  forbidden: {
    status: 403,
    code: code.permissionDenied,
    title: "Forbidden",
    about: "The key is valid but lacks the scope that the endpoint needs.",
  },
  "mfa-step-up-required": {
    status: 403,
    code: code.permissionDenied,
    title: "MFA step-up required",
    about: "Post a 6-digit code to `/v1/auth/mfa/step-up` and send the request again.",
  },
  "legal-acceptance-required": {
    status: 403,
    code: code.permissionDenied,
    title: "Legal acceptance required",
    about: "New terms have not been accepted. Post `revision_id` to `/v1/legal/accept` and send the request again.",
  },
  "not-found": {
    status: 404,
    code: code.notFound,
    title: "Not found",
    about: "The path or the id does not exist, or is not visible to the caller.",
  },
  "method-not-allowed": {
    status: 405,
    code: code.unimplemented,
    title: "Method not allowed",
    about: "The path exists, but not with this method. The Allow header lists those that it has.",
  },
  conflict: {
    status: 409,
    code: code.aborted,
    title: "Conflict",
    about: "The state of the thing does not allow the request at the moment. `detail` says why.",
  },
  "storage-quota-exceeded": {
    status: 409,
    code: code.resourceExhausted,
    title: "Storage quota exceeded",
    about: "The account's profiles fill its storage. Delete some, or launch the session without a profile.",
  },
  "profile-in-use": {
    status: 409,
    code: code.failedPrecondition,
    title: "Profile in use",
    about: "Another live session uses the profile: `active_session_id`.",
  },
  "pair-mode-conflict": {
    status: 409,
    code: code.aborted,
    title: "Control taken by another",
    about: "Another participant took control first: `winner_client_id`.",
  },
  "pair-mode-invalid-transition": {
    status: 409,
    code: code.failedPrecondition,
    title: "Invalid pair-mode transition",
    about: "Control cannot change this way from the state it is in.",
  },
  "email-already-registered": {
    status: 409,
    code: code.alreadyExists,
    title: "E-mail already registered",
    about: "An account with this e-mail address exists.",
  },
  "session-destroyed": {
    status: 410,
    code: code.failedPrecondition,
    title: "Session ended",
    about: "The session has ended; `ended_reason` says why. Create a new one.",
  },
  "proxy-validation-failed": {
    status: 422,
    code: code.failedPrecondition,
    title: "Proxy validation failed",
    about: "The proxy was tried at launch and failed: see `reason`. No session was created.",
  },
  "concurrency-limit": {
    status: 429,
    code: code.resourceExhausted,
    title: "Concurrency limit",
    about: "The account runs as many sessions at once as its tier allows. Destroy one first.",
  },
  "tier-limit": {
    status: 429,
    code: code.resourceExhausted,
    title: "Tier limit",
    about: "The account has as many of these as its tier allows.",
  },
  "rate-limited": {
    status: 429,
    code: code.resourceExhausted,
    title: "Rate limited",
    about: "A rate-limit bucket is empty. Wait `Retry-After` seconds and go on more slowly.",
  },
  "bundled-llm-budget-exhausted": {
    status: 402,
    code: code.resourceExhausted,
    title: "Bundled LLM budget exhausted",
    about: "The monthly cap of the bundled LLM is reached. It starts anew with the calendar month.",
  },
  "bundled-llm-consent-required": {
    status: 402,
    code: code.failedPrecondition,
    title: "Bundled LLM consent required",
    about: "Set `bundled_llm_consent` to true before the bundled LLM is used.",
  },
  internal: {
    status: 500,
    code: code.internal,
    title: "Internal error",
    about: "An unexpected fault of the service. Try again with exponential backoff, and quote `instance` when asking.",
  },
  "driver-error": {
    status: 502,
    code: code.unknown,
    title: "Browser error",
    about: "The browser could not do it; the extensions carry what it said. The session goes on.",
  },
  "byok-llm-required": {
    status: 502,
    code: code.failedPrecondition,
    title: "LLM credential required",
    about: "The turn has no usable LLM credential. Store a key, send one, or consent to the bundled LLM.",
  },
  "driver-not-integrated": {
    status: 503,
    code: code.unimplemented,
    title: "Not supported by this browser",
    about: "The session's browser runtime cannot do this, or is not installed. Use another runtime.",
  },
  "feature-unavailable": {
    status: 503,
    code: code.failedPrecondition,
    title: "Feature unavailable",
    about: "The deployment does not offer this.",
  },
  "capacity-unavailable": {
    status: 503,
    code: code.unavailable,
    title: "Capacity unavailable",
    about: "No worker can take it at the moment. Try again after `Retry-After` seconds.",
  },
  "session-timeout": {
    status: 504,
    code: code.deadlineExceeded,
    title: "Session operation timed out",
    about: "The operation did not finish within its timeout. The session goes on.",
  },
} as const satisfies Record<string, ErrorKind>;

/** The last part of a problem's type URI. */
export type ErrorSlug = keyof typeof errorTable;

/** Extensions that a problem always carries. Others may be added where they help. */
interface RequiredExtensions {
  "mfa-step-up-required": { requires_mfa_step_up: true };
  "legal-acceptance-required": { revision_id: string };
  "storage-quota-exceeded": { used_bytes: number; cap_bytes: number; tier: string };
  "profile-in-use": { active_session_id: string };
  "pair-mode-conflict": { winner_client_id: string };
  "pair-mode-invalid-transition": { from: string; transition: string };
  "proxy-validation-failed": { reason: "unreachable" | "auth_failed" | "timeout" | "egress_blocked" };
  "concurrency-limit": { current_sessions: number; limit: number };
  "rate-limited": { retry_after_seconds: number };
}

/** What may stand beside a problem's standard members. */
export type Extensions = Readonly<Record<string, string | number | boolean>>;

/** One field of a request and what is wrong with it. */
export interface FieldFault {
  readonly field: string;
  readonly message: string;
}

/** What a failure says besides its slug. */
export interface FailureDetails {
  readonly detail?: string;
  readonly errors?: readonly FieldFault[];
  /** Seconds for a Retry-After header. */
  readonly retryAfter?: number;
  /** What was caught; it goes to the log, never to the client. */
  readonly cause?: unknown;
}

/** The one error type that leaves a service. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly slug: ErrorSlug;
  readonly extensions: Extensions;
  readonly detail: string | undefined;
  readonly errors: readonly FieldFault[];
  readonly retryAfter: number | undefined;

  constructor(slug: ErrorSlug, extensions: Extensions = {}, details: FailureDetails = {}) {
    super(details.detail ?? errorTable[slug].title, details.cause === undefined ? undefined : { cause: details.cause });
    this.slug = slug;
    this.extensions = extensions;
    this.detail = details.detail;
    this.errors = details.errors ?? [];
    this.retryAfter = details.retryAfter;
  }
}

type ExtensionArgument<S extends ErrorSlug> = S extends keyof RequiredExtensions
  ? [extensions: RequiredExtensions[S] & Extensions, details?: FailureDetails]
  : [extensions?: Extensions, details?: FailureDetails];

/** Makes a failure to throw: `throw fail("profile-in-use", { active_session_id })`. */
export function fail<S extends ErrorSlug>(slug: S, ...[extensions, details]: ExtensionArgument<S>): Failure {
  return new Failure(slug, extensions, details);
}

/** Makes a failure of fields of the request: `throw failFields("bad-request", { url: "does not parse" })`. */
export function failFields(
  slug: "bad-request" | "validation-failed",
  faults: Readonly<Record<string, string>>,
): Failure {
  return failFaults(
    slug,
    Object.entries(faults).map(([field, message]) => ({ field, message })),
  );
}

/** Makes a failure from a list of faults; `detail` names the first. */
export function failFaults(slug: "bad-request" | "validation-failed", errors: readonly FieldFault[]): Failure {
  const [first] = errors;
  return new Failure(slug, {}, first ? { errors, detail: `${first.field}: ${first.message}` } : {});
}

/** Says whether a string is a slug of the table. */
export function isErrorSlug(value: string): value is ErrorSlug {
  return Object.hasOwn(errorTable, value);
}

/** Turns anything thrown into a failure; what is not one already becomes `internal` and keeps its cause for the log. */
export function asFailure(thrown: unknown): Failure {
  return thrown instanceof Failure ? thrown : new Failure("internal", {}, { cause: thrown });
}

/** A problem document (RFC 9457): extensions are flat members beside the standard ones. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly instance?: string;
  readonly errors?: readonly FieldFault[];
  readonly [extension: string]: unknown;
}

/** Writes a failure as a problem document. */
export function toProblem(failure: Failure, errorsBase: string, requestId: string | undefined): ProblemDocument {
  const { status, title } = errorTable[failure.slug];
  return {
    type: `${errorsBase}/${failure.slug}`,
    title,
    status,
    ...(failure.detail !== undefined && { detail: failure.detail }),
    ...(requestId !== undefined && { instance: requestId }),
    ...(failure.errors.length > 0 && { errors: failure.errors }),
    ...failure.extensions,
  };
}
