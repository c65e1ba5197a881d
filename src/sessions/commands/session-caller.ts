import type { SecretVariable } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { AuditEntry, Call, MethodAttempt, Principal } from "../../kernel/call.ts";
import type { Tx } from "../../platform/postgres/database.ts";

/** Caller of a session command: a client's call or an internal caller. */
export interface SessionCaller {
  readonly principal: Pick<Principal, "accountId" | "tier" | "overrides"> &
    Partial<Pick<Principal, "userId">> &
    KeyHolder;
  /** Aborts when the result is no longer needed. */
  readonly signal: AbortSignal;
  /** Time at which the result is no longer needed, in milliseconds of `performance.now()`; `Infinity` if unknown. */
  readonly deadline: number;
  readonly requestId: string;
  /** W3C trace context. */
  readonly traceparent: string;
  readonly idempotencyKey?: string | undefined;
  /** Agent step of the command. A session runs a step once, and repeats its response on retries. */
  readonly stepId?: string;
  /**
   * Client that must hold control. If undefined, commands that act on the page or wait fail while a client holds
   * control. Observe, read and capture run anyway.
   */
  readonly clientId?: string;
  /** Secrets that the command may type. The session's output shows their names instead of their values. */
  readonly variables?: readonly SecretVariable[];
  /** Marks the response as that of an earlier command with the same Idempotency-Key. */
  markReplayed?(): void;
  /**
   * Writes the audit entry. Undefined if the session command is only a part of the client's call, or for internal
   * callers.
   */
  audit?(tx: Tx, entry: AuditEntry): void;
  /** Counts a stream towards the session's limit. Throws `tier-limit` if there are too many streams. */
  joinSession?(sessionId: string): Promise<void>;
}

/** The key of a caller, if it has one. */
interface KeyHolder {
  readonly keyId?: string;
}

/** Returns the user of a caller, or the key of a caller without a user; undefined for internal callers. */
export function creatorIdOf({ userId, keyId }: SessionCaller["principal"]): string | undefined {
  return userId ?? keyId;
}

/** Caller that acts for a person. `clientId` identifies the person's client. */
export type PersonCaller = SessionCaller & Required<Pick<SessionCaller, "clientId">>;

/** Caller that creates a session. Attempts with the same identifiers create only one session. */
export interface SessionCreator extends SessionCaller, MethodAttempt {
  /** Charges for the launch. Called once the session is placed on a worker, even if the launch fails later. */
  charge?(): void;
}

/**
 * Returns the caller of internal commands during a call. The idempotency key is left out, because internal commands
 * must not be deduplicated against the client's call.
 */
export function callerOf({ principal, signal, deadline, requestId, traceparent }: Call): SessionCaller {
  return { principal, signal, deadline, requestId, traceparent };
}
