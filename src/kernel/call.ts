import type { Message } from "@bufbuild/protobuf";
import type { Failure } from "../platform/errors.ts";
import type { Ids } from "../platform/ids.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { Entitlement } from "./entitlement.ts";
import type { Role } from "./role.ts";

/** Fields common to all callers. */
interface Caller extends Entitlement {
  /** Display name: the name of a key, or the e-mail address of a user. */
  readonly name: string;
  readonly accountId: string;
  readonly scopes: ReadonlySet<string>;
  /** Returns whether calls from a client address are allowed. If undefined, all addresses are allowed. */
  readonly allowsAddress?: ((address: string) => boolean) | undefined;
  /**
   * The only session that the caller may use, if set. The caller may call only methods with the option `session_bearer`
   * or, with a file link, only methods with the option `file_link`.
   */
  readonly sessionId?: string;
  /** Set if the bearer is a one-time ticket, which permits only methods with the option `key_in_address`. */
  readonly ticketId?: string;
  /** Set if the bearer is a one-time link to a file. */
  readonly fileLink?: FileLinkGrant;
  /** Whether a view link permits control of its session. */
  readonly mayControl?: boolean;
  /** Set for a single-viewer link. Its viewer takes control as the client `clientId`. */
  readonly person?: { readonly linkId: string; readonly clientId: string };
}

/** A program with an API key. */
interface KeyPrincipal extends Caller {
  readonly kind: "key";
  readonly keyId: string;
  /** User who created the key, directly or through another key. Operator keys have none. */
  readonly userId?: string;
  /** Current role of the creator, which limits the scopes. */
  readonly role?: Role;
  /** Expiry, if the bearer is a token of the key (OAuthService). */
  readonly tokenExpiresAt?: Date;
}

/** Rights of a one-time link to a file. */
export interface FileLinkGrant {
  readonly id: string;
  /** Name of the file. */
  readonly name: string;
  readonly method: "get" | "put";
}

/** A logged-in user. */
export interface LoginPrincipal extends Caller {
  readonly kind: "login";
  readonly loginId: string;
  /** Identifier of the token pair in use. A step-up is bound to the pair and its successors. */
  readonly tokenId: string;
  readonly userId: string;
  /** Role of the user in the account. */
  readonly role: Role;
  /** Whether the user has a second factor. Methods require no step-up of users without a second factor. */
  readonly hasSecondFactor: boolean;
  /** Time of the last step-up of this login, in Unix milliseconds. */
  readonly steppedUpAt: number | undefined;
}

/** Milliseconds for which a step-up is valid. */
export const steppedUpFor = 600_000;

/** Authenticated caller. */
export type Principal = KeyPrincipal | LoginPrincipal;

/** Returns the login that calls a method with the option `login_only`. Throws for API keys. */
export function loginOf({ principal }: Pick<Call, "principal">): LoginPrincipal {
  if (principal.kind !== "login")
    throw new Error("expected a login, got an API key: the method lacks the option login_only");
  return principal;
}

/** One execution of a method with effects. A request with an Idempotency-Key may need several. */
export interface MethodAttempt {
  /** Generates identifiers: the same, in the same order, for every attempt at a request. */
  readonly ids: Ids;
  /** Whether an earlier attempt ended without an outcome. Rows committed by that attempt have identifiers of `ids`. */
  readonly resumes: boolean;
  /**
   * Commits the change with its response, which retries receive. Must be called once, as the last step. If `run`
   * returns a Failure, the Failure and the change are committed, and the Failure is thrown. If `run` throws, the change
   * is rolled back.
   */
  commit<Answer extends Message>(run: (tx: Tx) => Promise<Answer | Failure>): Promise<Answer>;
}

/** A request as seen by a service, independent of the transport. */
export interface Call extends MethodAttempt {
  readonly requestId: string;
  /** Authenticated caller. Throws in methods marked `public`. */
  readonly principal: Principal;
  /** Client address as reported by trusted proxies. */
  readonly clientAddress: string;
  /** Aborts when the client disconnects or its deadline passes. */
  readonly signal: AbortSignal;
  /** Client's deadline in milliseconds of `performance.now()`, or `Infinity` without a deadline. */
  readonly deadline: number;
  /** W3C trace context of the request, or a new one. */
  readonly traceparent: string;
  readonly idempotencyKey: string | undefined;
  /** Marks the response as a replay for the same Idempotency-Key. */
  markReplayed(): void;
  /** Raw body of a REST request, or undefined if the message carries the body. `bytesOfBody` reads both. */
  readonly body?: AsyncIterable<Uint8Array> | undefined;
  /** Returns a request header by lower-case name. */
  header(name: string): string | undefined;
  /** Sets a response header by lower-case name. A stream's headers are sent before its method starts. */
  setHeader(name: string, value: string): void;
  /**
   * Sets the event after which a stream starts. Over REST, the first frame contains the identifier of this event, so
   * that the client can resume the stream.
   */
  startAfter(eventId: string): void;
  /** Marks the response of a method that creates or updates as a creation (option `created_status`). */
  markCreated(): void;
  /** Sets the size of a raw response before its first byte: Content-Length over REST. */
  announce(bytes: number): void;
  /** Counts the bytes of a capture in memory against the caller's limit. */
  holdCapture(bytes: number): void;
  /**
   * Keeps the tokens drawn from the method's own rate-limit buckets, because the effect of the call has started. If the
   * call fails earlier, these tokens are refunded.
   */
  charge(): void;
  /** Counts a stream of a session. Rejects with `tier-limit` if the session or account has too many. */
  joinSession(sessionId: string): Promise<void>;
  /** Records that the call changed nothing, so that it needs no audit entry. */
  markUnchanged(): void;
  /**
   * Adds the call's audit entry to the transaction of its change and returns the entry's identifier. For methods with
   * the option `audit`.
   */
  audit(tx: Tx, entry: AuditEntry): string;
}

/** Content of an audit entry, apart from actor, time, origin and action. */
export interface AuditEntry {
  /** Identifier of the changed object. */
  readonly subject: string;
  /** Details of the change, without secrets. */
  readonly data?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** Actor of a change: a user, an API key, the operator, or the service itself. */
export type Actor =
  | { readonly kind: "user" | "key"; readonly id: string; readonly name: string }
  | { readonly kind: "operator" | "service" };

/** Audit entry without an audited call, such as a sign-in, an operator command or an expiry. */
export interface AuditRecord extends AuditEntry {
  readonly accountId: string;
  readonly actor: Actor;
  /** Action as `<thing>.<verb>`, such as `login.create`. */
  readonly action: string;
  /** Call that caused the change. Its request id, address and user agent are stored. */
  readonly call?: Pick<Call, "requestId" | "clientAddress" | "header">;
}

/** Audit entry of a call with the option `audit`. */
export interface AuditedCall extends AuditEntry, Pick<AuditRecord, "action"> {
  readonly call: Pick<Call, "principal" | "requestId" | "clientAddress" | "header">;
}

/** Audit log. Entries are inserted without waiting for the result. Errors fail the commit. */
export interface AuditLog {
  /** Adds the entry of a call and returns its identifier. Methods use `call.audit`. */
  append(tx: Tx, entry: AuditedCall): string;
  /** Adds an entry without an audited call and returns its identifier. */
  record(tx: Tx, entry: AuditRecord): string;
  /** Deletes an entry written before its change, if the change was refused. */
  withdraw(id: string): Promise<void>;
}

/** An effective revision of the terms that the account has not accepted. */
export interface OutstandingTerms {
  readonly revisionId: string;
  readonly url: string;
}

/** Terms that accounts have to accept. */
export interface LegalTerms {
  /** Returns the revision to accept, or undefined. Returns no promise if the cache shows that none is outstanding. */
  outstanding(accountId: string): Promise<OutstandingTerms | undefined> | undefined;
}
