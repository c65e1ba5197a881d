import type { SecretVariable } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Attempt, AuditEntry, Call, Principal } from "../../kernel/call.ts";
import type { Tx } from "../../platform/postgres/database.ts";

/** On whose behalf something is done with a session, and for how long. Every call of a client is one. */
export interface SessionCaller {
  readonly principal: Pick<Principal, "accountId" | "tier" | "overrides">;
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal;
  /** When nobody waits any more, in milliseconds of `performance.now()`; `Infinity` when that is not known. */
  readonly deadline: number;
  readonly requestId: string;
  /** W3C trace context. */
  readonly traceparent: string;
  readonly idempotencyKey?: string | undefined;
  /** The step of a turn that the command is: its session does a step once, and answers it again when asked again. */
  readonly stepId?: string;
  /** The person who commands, who must hold control; without one it is the API, which commands while nobody does. */
  readonly clientId?: string;
  /** Secrets that it may type, and that its session then shows by their names alone. */
  readonly variables?: readonly SecretVariable[];
  /** Hears that an answer is that of an earlier command with the same Idempotency-Key. */
  markReplayed?(): void;
  /** Writes the caller's entry of the audit log, where what it does to the session is the whole of its call. */
  audit?(tx: Tx, entry: AuditEntry): void;
  /** Counts a stream among those of the session. Throws `tier-limit` when there are too many. */
  joinSession?(sessionId: string): Promise<void>;
}

/** A person who commands. */
export type PersonCaller = SessionCaller & Required<Pick<SessionCaller, "clientId">>;

/** The same for what makes a session: it is made once, however often it is attempted. */
export interface SessionMaker extends SessionCaller, Attempt {
  /** Hears that the session has a slot: from now on its launch costs something, even when it fails. */
  charge?(): void;
}

/** The call without its key: a worker remembers commands by it, and what is done for the call is none of them. */
export function callerOf({ principal, signal, deadline, requestId, traceparent }: Call): SessionCaller {
  return { principal, signal, deadline, requestId, traceparent };
}
