/** All errors of the service. `fail` in errors.ts creates them. */

/** Codes of google.rpc.Code, shared by Connect and gRPC. */
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

/** Extension member of a problem. */
export interface Extension {
  readonly type: "string" | "integer" | "boolean";
  readonly format?: "date-time";
  /** Possible values, if limited. */
  readonly values?: readonly (string | true)[];
  /** Sentence for the API reference. */
  readonly about: string;
  /** Whether the member may be absent. */
  readonly optional?: true;
}

interface ErrorKind {
  readonly status: number;
  /** google.rpc.Code. */
  readonly code: number;
  readonly title: string;
  /** Sentence for the error page: cause and remedy. */
  readonly about: string;
  readonly extensions?: Readonly<Record<string, Extension>>;
}

/**
 * Maps slugs to status, code, title, explanation and extensions. Slugs and extension names are part of the contract and
 * never renamed. Failure types, the OpenAPI document and the error pages derive from this table.
 */
export const errorTable = {
  "bad-request": {
    status: 400,
    code: code.invalidArgument,
    title: "Bad request",
    about: "The request contradicts a rule of the service, such as a URL that does not parse. Change the request.",
    extensions: {
      error: { type: "string", optional: true, about: "The code of RFC 6749, at the OAuth token endpoint." },
    },
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
    extensions: {
      error: { type: "string", optional: true, about: "The code of RFC 6749, at the OAuth token endpoint." },
    },
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
    about: "The key was revoked, directly or after the grace period of its rotation.",
  },
  "expired-key": {
    status: 401,
    code: code.unauthenticated,
    title: "Expired key",
    about: "The key's `expires_at` has passed. Use the key that replaced it.",
  },
  "invalid-auth-token": {
    status: 401,
    code: code.unauthenticated,
    title: "Invalid token",
    about: "A sign-up, magic-link or password-reset token is malformed, used or expired. Request a new one.",
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
    extensions: {
      requires_mfa_step_up: { type: "boolean", values: [true], about: "Always `true`." },
    },
  },
  "legal-acceptance-required": {
    status: 403,
    code: code.permissionDenied,
    title: "Legal acceptance required",
    about: "New terms have not been accepted. Post `revision_id` to `/v1/legal/accept` and send the request again.",
    extensions: {
      revision_id: { type: "string", about: "The revision of the terms to accept." },
      url: { type: "string", optional: true, about: "URL of the revision's text." },
    },
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
    about: "The path does not support this method. The Allow header lists the supported ones.",
  },
  conflict: {
    status: 409,
    code: code.aborted,
    title: "Conflict",
    about: "The current state of the resource does not allow the request. `detail` contains the reason.",
    extensions: {
      pause_reason: {
        type: "string",
        optional: true,
        about: "Kind of the bot check for which the session is paused.",
      },
      active_session_id: { type: "string", optional: true, about: "The session that still uses the profile." },
      holder_client_id: { type: "string", optional: true, about: "The client of the person who holds control." },
      stale_ref: {
        type: "boolean",
        values: [true],
        optional: true,
        about: "Always `true`: a referenced element is gone or was replaced. Observe the page again.",
      },
      running_turn_id: { type: "string", optional: true, about: "The agent turn in progress." },
      in_doubt: {
        type: "boolean",
        values: [true],
        optional: true,
        about: "The command had reached the page when a person took control. Its result is unknown.",
      },
    },
  },
  "storage-quota-exceeded": {
    status: 409,
    code: code.resourceExhausted,
    title: "Storage quota exceeded",
    about: "The account's profiles fill its storage. Delete some, or launch the session without a profile.",
    extensions: {
      used_bytes: { type: "integer", about: "Storage used by the account's profiles." },
      cap_bytes: { type: "integer", about: "Storage that the tier allows." },
      tier: { type: "string", about: "The account's tier." },
    },
  },
  "profile-in-use": {
    status: 409,
    code: code.failedPrecondition,
    title: "Profile in use",
    about: "Another live session uses the profile: `active_session_id`.",
    extensions: {
      active_session_id: { type: "string", about: "The session that uses the profile." },
    },
  },
  "pair-mode-conflict": {
    status: 409,
    code: code.aborted,
    title: "Control taken by another",
    about: "Another participant took control first: `winner_client_id`.",
    extensions: {
      winner_client_id: { type: "string", about: "Client that holds control." },
    },
  },
  "pair-mode-invalid-transition": {
    status: 409,
    code: code.failedPrecondition,
    title: "Invalid pair-mode transition",
    about: "Control cannot change this way from the state it is in.",
    extensions: {
      from: { type: "string", about: "Current state of control." },
      transition: { type: "string", values: ["takeover", "handback", "mode"], about: "Requested transition." },
      holder_client_id: {
        type: "string",
        optional: true,
        about: "Client that holds control, if it is another person's.",
      },
    },
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
    about: "The session has ended for the reason in `ended_reason`. Create a new one.",
    extensions: {
      ended_reason: { type: "string", optional: true, about: "Why the session ended." },
      ended_at: { type: "string", format: "date-time", optional: true, about: "When it ended." },
      duration_ms: { type: "integer", optional: true, about: "Milliseconds from live to end." },
    },
  },
  "proxy-validation-failed": {
    status: 422,
    code: code.failedPrecondition,
    title: "Proxy validation failed",
    about: "The proxy failed its test at launch: see `reason`. No session was created.",
    extensions: {
      reason: {
        type: "string",
        values: ["unreachable", "auth_failed", "timeout", "egress_blocked"],
        about: "Kind of failure.",
      },
    },
  },
  "concurrency-limit": {
    status: 429,
    code: code.resourceExhausted,
    title: "Concurrency limit",
    about: "The account runs as many sessions at once as its tier allows. Destroy one first.",
    extensions: {
      current_sessions: { type: "integer", about: "Running sessions." },
      limit: { type: "integer", about: "Concurrent sessions that the tier allows." },
    },
  },
  "tier-limit": {
    status: 429,
    code: code.resourceExhausted,
    title: "Tier limit",
    about:
      "The account has reached the maximum number of these resources. For most resources, the tier sets the limit.",
    extensions: {
      current_profiles: { type: "integer", optional: true, about: "Profiles that the account has." },
      current_api_keys: { type: "integer", optional: true, about: "Keys of the account that count towards the limit." },
      current_webhooks: {
        type: "integer",
        optional: true,
        about: "Webhooks of the account that count towards the limit.",
      },
      current_recipes: { type: "integer", optional: true, about: "Recipes that the account has." },
      current_streams: {
        type: "integer",
        optional: true,
        about: "Open streams of the account or session.",
      },
      limit: { type: "integer", optional: true, about: "Maximum number." },
      quota: { type: "string", optional: true, about: "The exhausted monthly quota." },
      resets_at: { type: "string", format: "date-time", optional: true, about: "Time at which the quota resets." },
    },
  },
  "rate-limited": {
    status: 429,
    code: code.resourceExhausted,
    title: "Rate limited",
    about:
      "A rate-limit bucket is empty, or the service holds too many bytes of the caller's requests and unread answers. Wait `Retry-After` seconds and reduce the rate.",
    extensions: {
      retry_after_seconds: { type: "integer", about: "The same as the Retry-After header." },
    },
  },
  "bundled-llm-budget-exhausted": {
    status: 402,
    code: code.resourceExhausted,
    title: "Bundled LLM budget exhausted",
    about: "The monthly cap of the bundled LLM is reached. It resets with the calendar month.",
  },
  "bundled-llm-consent-required": {
    status: 402,
    code: code.failedPrecondition,
    title: "Bundled LLM consent required",
    about: "Set `bundled_llm_consent` to true before using the bundled LLM.",
  },
  internal: {
    status: 500,
    code: code.internal,
    title: "Internal error",
    about: "An unexpected fault of the service. Try again with exponential backoff, and quote `instance` in a report.",
  },
  "driver-error": {
    status: 502,
    code: code.unknown,
    title: "Browser error",
    about: "The browser failed to run the command. The extensions contain the reason. The session continues.",
    extensions: {
      net_error: {
        type: "string",
        optional: true,
        about: "The browser's network error, such as `ERR_NAME_NOT_RESOLVED`.",
      },
      blocked_by: {
        type: "string",
        values: ["egress"],
        optional: true,
        about: "The egress guard refused the address.",
      },
      target_closed: { type: "boolean", values: [true], optional: true, about: "The page was closed." },
      target_crashed: {
        type: "boolean",
        values: [true],
        optional: true,
        about: "The page's renderer has crashed. The next navigate starts another.",
      },
      launch_failed: { type: "boolean", values: [true], optional: true, about: "The browser could not be launched." },
      worker_lost: {
        type: "boolean",
        values: [true],
        optional: true,
        about: "The connection to the browser's machine broke. The command may have run.",
      },
      capture_bytes: { type: "integer", optional: true, about: "Size of a capture that is too large to send." },
    },
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
    extensions: {
      runtime: { type: "string", optional: true, about: "The runtime that is missing or cannot do it." },
    },
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
    about: "No worker has capacity. Try again after `Retry-After` seconds.",
  },
  "session-timeout": {
    status: 504,
    code: code.deadlineExceeded,
    title: "Session operation timed out",
    about: "The operation did not finish within its timeout. The session continues.",
  },
} as const satisfies Record<string, ErrorKind>;

/** Last part of a problem's type URI. */
export type ErrorSlug = keyof typeof errorTable;

/** Returns whether a string is a slug of the table. */
export function isErrorSlug(value: string): value is ErrorSlug {
  return Object.hasOwn(errorTable, value);
}

/** Returns the extensions of a slug as plain data. */
export function extensionsOf(slug: ErrorSlug): Readonly<Record<string, Extension>> {
  const kind: ErrorKind = errorTable[slug];
  return kind.extensions ?? {};
}
