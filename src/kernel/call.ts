import type { Message } from "@bufbuild/protobuf";
import type { Failure } from "../platform/errors.ts";
import type { Ids } from "../platform/ids.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { Entitlement } from "./entitlement.ts";
import type { Role } from "./role.ts";

/** What every caller has: whose things it may touch, and which of them; and what its account is entitled to. */
interface Caller extends Entitlement {
  /** What people call it: the name of a key, the e-mail address of a user. */
  readonly name: string;
  readonly accountId: string;
  readonly scopes: ReadonlySet<string>;
  /** Says whether it may call from an address; from every one without it. */
  readonly allowsAddress?: ((address: string) => boolean) | undefined;
  /** The one session that it may use, by methods with the option `session_bearer` alone; most may use all of the account's. */
  readonly sessionId?: string;
  /** It may take control of that session, where its bearer is a view link. */
  readonly mayControl?: boolean;
  /** The one person for whom its view link was made: the first who comes by it, and controls under this name. */
  readonly person?: { readonly linkId: string; readonly clientId: string };
}

/** A program that shows an API key. */
interface KeyPrincipal extends Caller {
  readonly kind: "key";
  readonly keyId: string;
  /** The user who made it, or whose key did; an operator's key has none. */
  readonly userId?: string;
  /** What that user is in the account now: its scopes are no more than that gives. */
  readonly role?: Role;
  /** When the bearer expires, if it is a token of the key (OAuthService). */
  readonly tokenExpiresAt?: Date;
}

/** A person who has logged in. */
export interface LoginPrincipal extends Caller {
  readonly kind: "login";
  readonly loginId: string;
  /** The pair of tokens that is shown: a step-up belongs to it, and to those that follow it. */
  readonly tokenId: string;
  readonly userId: string;
  /** What the user is in the account. */
  readonly role: Role;
  /** Whether the user has a second factor: only then a step-up can be asked for. */
  readonly hasSecondFactor: boolean;
  /** When this login last showed the second factor, in milliseconds since the Unix epoch. */
  readonly steppedUpAt: number | undefined;
}

/** Milliseconds for which a step-up is good. */
export const steppedUpFor = 600_000;

/** Who makes a call. */
export type Principal = KeyPrincipal | LoginPrincipal;

/** The login that calls a method with the option `login_only`, which lets nobody else in. */
export function loginOf({ principal }: Pick<Call, "principal">): LoginPrincipal {
  if (principal.kind !== "login") throw new Error("an API key calls a method that is about a person");
  return principal;
}

/** One run of a method that changes something; a request that is sent again with its Idempotency-Key may take several. */
export interface Attempt {
  /** Identifiers of what it makes: a later attempt gets those of the first, in the same order. */
  readonly ids: Ids;
  /** An earlier attempt came to nothing because its gateway died. What it had committed bears the identifiers of `ids`. */
  readonly resumes: boolean;
  /**
   * Commits the change together with its answer, which a repeated request gets. Each attempt does it once, last of all. What
   * has failed although something was changed gives its failure back; one that is thrown undoes the change.
   */
  commit<Answer extends Message>(run: (tx: Tx) => Promise<Answer | Failure>): Promise<Answer>;
}

/** What a service sees of a request, whatever transport it came by. */
export interface Call extends Attempt {
  readonly requestId: string;
  /** The caller. Reading it in a method marked `public` throws. */
  readonly principal: Principal;
  /** Address of the client, as far as trusted proxies tell it. */
  readonly clientAddress: string;
  /** Aborts when the client has gone away or its deadline has passed. */
  readonly signal: AbortSignal;
  /** When the client stops waiting, in milliseconds of `performance.now()`; `Infinity` when it did not say. */
  readonly deadline: number;
  /** W3C trace context: the request's own, or one made for it. */
  readonly traceparent: string;
  /** The Idempotency-Key header. */
  readonly idempotencyKey: string | undefined;
  /** Says that the answer is that of an earlier request with the same Idempotency-Key. */
  markReplayed(): void;
  /** The raw body of a REST request; undefined where its message carries it. `bytesOfBody` reads both. */
  readonly body?: AsyncIterable<Uint8Array> | undefined;
  /** Reads a header of the request, by lower-case name. */
  header(name: string): string | undefined;
  /** Sets a header of the answer, by lower-case name. A stream's headers have left when its method begins. */
  setHeader(name: string, value: string): void;
  /** Says that something new was made, where the method might also have changed what is there (option `created_status`). */
  markCreated(): void;
  /** Says how many bytes a raw answer has, before the first of them: its Content-Length over REST. */
  announce(bytes: number): void;
  /** Counts a capture that is put together in memory among the bytes that are held for the caller. */
  holdCapture(bytes: number): void;
  /**
   * Keeps the tokens that the call has drawn from the buckets of its method, though it may yet fail: what they are for has
   * begun. A call that fails before gets them back.
   */
  charge(): void;
  /** Counts a stream among those of a session. Throws `tier-limit` when there are too many of it, or of the account. */
  joinSession(sessionId: string): Promise<void>;
  /** Says that there was nothing to change, and so nothing for the audit log. */
  markUnchanged(): void;
  /**
   * Writes the call's entry of the audit log with the transaction of its change, and gives its identifier. For methods with
   * the option `audit`.
   */
  audit(tx: Tx, entry: AuditEntry): string;
}

/** What the audit log keeps of a change beside who made it, when, from where, and what it is called. */
export interface AuditEntry {
  /** Identifier of what was changed. */
  readonly subject: string;
  /** What the change was, without secrets. */
  readonly data?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** Who did something: a person, a program, who runs the service, or the service by itself. */
export type Actor =
  | { readonly kind: "user" | "key"; readonly id: string; readonly name: string }
  | { readonly kind: "operator" | "service" };

/** An entry of what no call with the option `audit` has done: a sign-in, an operator's command, an end that came by itself. */
export interface AuditRecord extends AuditEntry {
  readonly accountId: string;
  readonly actor: Actor;
  /** What was done: `<thing>.<verb>`, such as `login.create`. */
  readonly action: string;
  /** The call in which it was done, of which is kept what it is called and where it came from. */
  readonly call?: Pick<Call, "requestId" | "clientAddress" | "header">;
}

/** An entry of what a call with the option `audit` has done. */
export interface AuditedCall extends AuditEntry, Pick<AuditRecord, "action"> {
  readonly call: Pick<Call, "principal" | "requestId" | "clientAddress" | "header">;
}

/** The audit log. An entry travels with the next statement of its transaction, and fails with the commit. */
export interface AuditLog {
  /** Writes the entry of a call, and gives its identifier: methods do it by `call.audit`. */
  append(tx: Tx, entry: AuditedCall): string;
  /** Writes any other entry, and gives its identifier. */
  record(tx: Tx, entry: AuditRecord): string;
  /** Deletes an entry that was written before its change, which was then refused. */
  withdraw(id: string): Promise<void>;
}

/** A revision of the terms that is in force and was not accepted. */
export interface OutstandingTerms {
  readonly revisionId: string;
  readonly url: string;
}

/** The terms that accounts have to accept. */
export interface LegalTerms {
  /** Gives the revision that an account has yet to accept: at once where it is known that there is none. */
  outstanding(accountId: string): Promise<OutstandingTerms | undefined> | undefined;
}
