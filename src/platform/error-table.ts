/** All errors of the service, in one table (`fail` in errors.ts throws them). */

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

/** A member that a problem has besides the standard ones. */
export interface Extension {
  readonly type: "string" | "integer" | "boolean";
  readonly format?: "date-time";
  /** The only values that it has. */
  readonly values?: readonly (string | true)[];
  /** One sentence for the reference. */
  readonly about: string;
  /** It is there where it helps; the others always are. */
  readonly optional?: true;
}

interface ErrorKind {
  /** HTTP status. */
  readonly status: number;
  /** google.rpc.Code. */
  readonly code: number;
  /** The problem's title. */
  readonly title: string;
  /** One sentence for the error's page: when it happens and what to do. */
  readonly about: string;
  readonly extensions?: Readonly<Record<string, Extension>>;
}

/**
 * Slug to status, code, title, explanation and extensions. Slugs and the names of extensions are part of the contract and
 * never renamed. Types of failures, the OpenAPI document and the error pages come from here.
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
      url: { type: "string", optional: true, about: "Where the revision can be read." },
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
    about: "The path exists, but not with this method. The Allow header lists those that it has.",
  },
  conflict: {
    status: 409,
    code: code.aborted,
    title: "Conflict",
    about: "The state of the thing does not allow the request at the moment. `detail` says why.",
    extensions: {
      pause_reason: {
        type: "string",
        optional: true,
        about: "The kind of the bot check that the session is paused for.",
      },
      active_session_id: { type: "string", optional: true, about: "The session that still uses the profile." },
      holder_client_id: { type: "string", optional: true, about: "The client of the person who holds control." },
      stale_ref: {
        type: "boolean",
        values: [true],
        optional: true,
        about: "Always `true`: a reference is to an element that is gone or another by now. Look at the page again.",
      },
      running_turn_id: { type: "string", optional: true, about: "The turn of the agent that runs." },
      in_doubt: {
        type: "boolean",
        values: [true],
        optional: true,
        about: "The command had reached the page when a person took control: what came of it is not known.",
      },
    },
  },
  "storage-quota-exceeded": {
    status: 409,
    code: code.resourceExhausted,
    title: "Storage quota exceeded",
    about: "The account's profiles fill its storage. Delete some, or launch the session without a profile.",
    extensions: {
      used_bytes: { type: "integer", about: "What the account's profiles take." },
      cap_bytes: { type: "integer", about: "What its tier allows." },
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
      winner_client_id: { type: "string", about: "Who holds control." },
    },
  },
  "pair-mode-invalid-transition": {
    status: 409,
    code: code.failedPrecondition,
    title: "Invalid pair-mode transition",
    about: "Control cannot change this way from the state it is in.",
    extensions: {
      from: { type: "string", about: "The state that control is in." },
      transition: { type: "string", values: ["takeover", "handback", "mode"], about: "What was asked for." },
      holder_client_id: { type: "string", optional: true, about: "Who holds control, when another person does." },
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
    about: "The session has ended; `ended_reason` says why. Create a new one.",
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
    about: "The proxy was tried at launch and failed: see `reason`. No session was created.",
    extensions: {
      reason: {
        type: "string",
        values: ["unreachable", "auth_failed", "timeout", "egress_blocked"],
        about: "How the proxy failed.",
      },
    },
  },
  "concurrency-limit": {
    status: 429,
    code: code.resourceExhausted,
    title: "Concurrency limit",
    about: "The account runs as many sessions at once as its tier allows. Destroy one first.",
    extensions: {
      current_sessions: { type: "integer", about: "Sessions that run." },
      limit: { type: "integer", about: "Sessions that the tier allows at once." },
    },
  },
  "tier-limit": {
    status: 429,
    code: code.resourceExhausted,
    title: "Tier limit",
    about: "The account has as many of these as it may have at once; of most things its tier says how many.",
    extensions: {
      current_profiles: { type: "integer", optional: true, about: "Profiles that the account has." },
      current_api_keys: { type: "integer", optional: true, about: "Keys that the account has, and that count." },
      current_webhooks: { type: "integer", optional: true, about: "Webhooks that the account has, and that count." },
      current_recipes: { type: "integer", optional: true, about: "Recipes that the account has." },
      current_streams: {
        type: "integer",
        optional: true,
        about: "Streams that the account, or the session, has open.",
      },
      limit: { type: "integer", optional: true, about: "How many there may be." },
      quota: { type: "string", optional: true, about: "The monthly quota that is used up." },
      resets_at: { type: "string", format: "date-time", optional: true, about: "When that quota starts anew." },
    },
  },
  "rate-limited": {
    status: 429,
    code: code.resourceExhausted,
    title: "Rate limited",
    about:
      "A rate-limit bucket is empty, or the service holds too many bytes of the caller's requests and unread answers. Wait `Retry-After` seconds and go on more slowly.",
    extensions: {
      retry_after_seconds: { type: "integer", about: "The same as the Retry-After header." },
    },
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
      target_closed: { type: "boolean", values: [true], optional: true, about: "The page has closed meanwhile." },
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
        about: "The connection to the browser's machine broke; whether the command was carried out is not known.",
      },
      capture_bytes: { type: "integer", optional: true, about: "Size of a capture that is too large to be sent." },
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

/** Says whether a string is a slug of the table. */
export function isErrorSlug(value: string): value is ErrorSlug {
  return Object.hasOwn(errorTable, value);
}

/** The extensions of a slug, as data. */
export function extensionsOf(slug: ErrorSlug): Readonly<Record<string, Extension>> {
  const kind: ErrorKind = errorTable[slug];
  return kind.extensions ?? {};
}
