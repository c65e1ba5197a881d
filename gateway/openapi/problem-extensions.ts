import type { ErrorSlug, fail } from "../../src/platform/errors.ts";
import type { Schema } from "./model.ts";

/** Names of the extensions that `fail` asks of a slug: those that are no index signature. */
type NeededExtensions<S extends ErrorSlug> = keyof {
  [K in keyof NonNullable<Parameters<typeof fail<S>>[1]> as string extends K ? never : K]: true;
};

type Needed = {
  readonly [S in ErrorSlug as [NeededExtensions<S>] extends [never] ? never : S]: {
    readonly [K in NeededExtensions<S>]: Schema;
  };
};

/** Extensions that a problem always carries. The compiler holds this table to what `fail` asks for. */
const needed: Needed = {
  "mfa-step-up-required": { requires_mfa_step_up: { const: true } },
  "legal-acceptance-required": { revision_id: { type: "string", description: "The revision of the terms to accept." } },
  "storage-quota-exceeded": {
    used_bytes: { type: "integer", description: "What the account's profiles take." },
    cap_bytes: { type: "integer", description: "What its tier allows." },
    tier: { type: "string", description: "The account's tier." },
  },
  "profile-in-use": { active_session_id: { type: "string", description: "The session that uses the profile." } },
  "pair-mode-conflict": { winner_client_id: { type: "string", description: "Who holds control." } },
  "pair-mode-invalid-transition": {
    from: { type: "string", description: "The state that control is in." },
    transition: { type: "string", description: "What was asked for: `takeover` or `handback`." },
  },
  "proxy-validation-failed": {
    reason: { enum: ["unreachable", "auth_failed", "timeout", "egress_blocked"], description: "How the proxy failed." },
  },
  "concurrency-limit": {
    current_sessions: { type: "integer", description: "Sessions that run." },
    limit: { type: "integer", description: "Sessions that the tier allows at once." },
  },
  "rate-limited": { retry_after_seconds: { type: "integer", description: "The same as the Retry-After header." } },
};

/** Extensions that a problem carries where they help. */
const possible: { readonly [S in ErrorSlug]?: Readonly<Record<string, Schema>> } = {
  conflict: {
    pause_reason: { type: "string", description: "The kind of the bot check that the session is paused for." },
  },
  "pair-mode-invalid-transition": {
    holder_client_id: { type: "string", description: "Who holds control, when another person does." },
  },
  "session-destroyed": {
    ended_reason: { type: "string", description: "Why the session ended." },
    ended_at: { type: "string", format: "date-time", description: "When it ended." },
    duration_ms: { type: "integer", description: "Milliseconds from live to end." },
  },
  "driver-error": {
    net_error: { type: "string", description: "The browser's network error, such as `net::ERR_NAME_NOT_RESOLVED`." },
    blocked_by: { type: "string", description: "`egress` when the egress guard refused the address." },
  },
};

/** The members that the problem of a slug carries besides the standard ones, and which of them are always there. */
export function extensionsOf(slug: ErrorSlug): { properties: Readonly<Record<string, Schema>>; required: string[] } {
  const always: Readonly<Record<string, Schema>> = Object.entries(needed).find(([key]) => key === slug)?.[1] ?? {};
  return { properties: { ...always, ...possible[slug] }, required: Object.keys(always) };
}
