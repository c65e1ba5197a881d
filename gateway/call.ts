import { randomBytes } from "node:crypto";
import { Idempotency } from "../src/gen/pilothouse/v1/options_pb.ts";
import type { Bearer } from "../src/identity/bearer.ts";
import type { Attempt, AuditEntry, Call, Principal } from "../src/kernel/call.ts";
import type { ServedMethod } from "../src/kernel/registry.ts";
import type { BucketState } from "../src/limits/buckets.ts";
import { fail } from "../src/platform/errors.ts";
import type { Tx } from "../src/platform/postgres/database.ts";
import type { ClientBuffer } from "./client-buffers.ts";
import type { Peer } from "./peer.ts";
import { rateLimitHeaders } from "./rate-limit-headers.ts";

/**
 * One request on its way through the policies to its method. Transports make it, policies fill it in, services see it
 * as a `Call`. What costs time is made when first asked for: an AbortSignal alone takes 3 us.
 */
export class GatewayCall implements Call {
  readonly served: ServedMethod;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly deadline: number;
  /** The raw body that comes with the request over REST. */
  body: AsyncIterable<Uint8Array> | undefined;
  /** Headers of the answer: the request's id, and what policies and the method have set, whatever becomes of the call. */
  readonly responseHeaders: Record<string, string>;
  readonly #peer: Peer;
  #principal: Principal | undefined;
  #attempt: Attempt | undefined;
  #controller: AbortController | undefined;
  #ended: { readonly reason: unknown } | undefined;
  #traceparent: string | undefined;
  #audit: Call["audit"] | undefined;
  #join: Call["joinSession"] | undefined;
  /** What the caller shows, once it was read. */
  bearer: Bearer | undefined;
  /** The bucket that the headers of its answer show. */
  shown: BucketState | undefined;
  /** Tokens were drawn for it from the buckets of its method. */
  hasDrawn = false;
  /** Its method has begun what those tokens are for. */
  isCharged = false;
  /** It has found nothing to change. */
  isUnchanged = false;
  /** It has made something new. */
  isCreated = false;
  /** How many bytes its raw answer has, where that was said. */
  announcedBytes: number | undefined;
  /** The bytes that the gateway holds for it, once it was admitted. */
  buffer: ClientBuffer | undefined;
  /** Its end was counted. */
  isOver = false;
  /** Milliseconds of `performance.now()`. */
  readonly startedAt = performance.now();

  constructor(served: ServedMethod, peer: Peer, timeoutMs: number | undefined) {
    this.served = served;
    this.#peer = peer;
    this.requestId = peer.requestId;
    this.clientAddress = peer.clientAddress;
    this.responseHeaders = { "x-request-id": peer.requestId };
    this.deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.startedAt + timeoutMs;
  }

  get principal(): Principal {
    if (!this.#principal) throw new Error(`${this.served.method} has no principal`);
    return this.#principal;
  }

  set principal(principal: Principal) {
    this.#principal = principal;
  }

  /** The account of its caller, once that is known. */
  get accountId(): string | undefined {
    return this.#principal?.accountId;
  }

  /** The run of a method that keeps its answers; others have none. */
  get attempt(): Attempt {
    if (!this.#attempt) throw new Error(`${this.served.method} keeps no answers: it has no attempts`);
    return this.#attempt;
  }

  set attempt(attempt: Attempt) {
    this.#attempt = attempt;
  }

  get ids(): Attempt["ids"] {
    return this.attempt.ids;
  }

  get resumes(): boolean {
    return this.attempt.resumes;
  }

  get commit(): Attempt["commit"] {
    return this.attempt.commit;
  }

  markReplayed(): void {
    this.responseHeaders["idempotency-replayed"] = "true";
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(this.#ended.reason);
    }
    return this.#controller.signal;
  }

  /**
   * Ends the call for its service: the client has gone away, or its deadline has passed. What must not be left halfway,
   * and what the client can ask for again by its key, runs to completion.
   */
  cancel(): void {
    if (!this.#runsToCompletion) {
      const reason = fail("session-timeout", {}, { detail: "the client stopped waiting" });
      this.#ended ??= { reason };
      this.#controller?.abort(reason);
    }
  }

  get #runsToCompletion(): boolean {
    const { rules, keepsAnswers } = this.served;
    const isKept = rules.idempotency === Idempotency.WORKER || keepsAnswers;
    return rules.runsToCompletion || (this.idempotencyKey !== undefined && isKept);
  }

  /** Shows a bucket in the headers of the answer. */
  show(bucket: BucketState): void {
    this.shown = bucket;
    Object.assign(this.responseHeaders, rateLimitHeaders(bucket));
  }

  get traceparent(): string {
    this.#traceparent ??= continueTrace(this.header("traceparent"));
    return this.#traceparent;
  }

  /** Says how an entry of the audit log is written; only methods with the option `audit` have one. */
  auditWith(write: Call["audit"]): void {
    this.#audit = write;
  }

  audit(tx: Tx, entry: AuditEntry): string {
    if (!this.#audit) throw new Error(`${this.served.name} has no option audit`);
    return this.#audit(tx, entry);
  }

  markUnchanged(): void {
    this.isUnchanged = true;
  }

  /** Whether it goes on with what an earlier attempt has begun. */
  get goesOn(): boolean {
    return this.#attempt?.resumes ?? false;
  }

  /** Says how the stream is counted among those of a session: only one that lasts is, and only until it is over. */
  joinWith(join: Call["joinSession"] | undefined): void {
    this.#join = join;
  }

  async joinSession(sessionId: string): Promise<void> {
    await this.#join?.(sessionId);
  }

  markCreated(): void {
    this.isCreated = true;
  }

  announce(bytes: number): void {
    this.announcedBytes = bytes;
  }

  holdCapture(bytes: number): void {
    this.buffer?.set("capture", bytes);
  }

  charge(): void {
    this.isCharged = true;
  }

  get idempotencyKey(): string | undefined {
    return this.header("idempotency-key");
  }

  header(name: string): string | undefined {
    return this.#peer.header(name);
  }

  /** What the caller shows is a part of the path, which is written to the logs of whatever is on the way. */
  get showsInPath(): boolean {
    return this.#peer.showsInPath;
  }

  setHeader(name: string, value: string): void {
    this.responseHeaders[name] = value;
  }
}

/** Continues a W3C trace (https://www.w3.org/TR/trace-context/) with a span of ours, or begins one. */
function continueTrace(received: string | undefined): string {
  const parent = /^00-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/.exec(received ?? "");
  const trace = parent?.[1] ?? randomBytes(16).toString("hex");
  return `00-${trace}-${randomBytes(8).toString("hex")}-${parent?.[2] ?? "00"}`;
}
