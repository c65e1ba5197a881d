import { randomBytes } from "node:crypto";
import { Idempotency } from "../src/gen/pilothouse/v1/options_pb.ts";
import type { Bearer } from "../src/kernel/bearer-kind.ts";
import type { AuditEntry, Call, MethodAttempt, Principal } from "../src/kernel/call.ts";
import type { ServedMethod } from "../src/kernel/registry.ts";
import type { BucketState } from "../src/limits/buckets.ts";
import type { ErrorSlug } from "../src/platform/error-table.ts";
import { fail } from "../src/platform/errors.ts";
import type { Tx } from "../src/platform/postgres/database.ts";
import { openSpan, type SpanAttributes, type TraceSpan } from "../src/platform/traces/spans.ts";
import type { ClientBuffer } from "./client-buffers.ts";
import type { Peer } from "./peer.ts";

/**
 * A call of a method, from the arrival of its headers to its end. Services receive it as a `Call`. Costly fields are
 * created on first use: an AbortSignal takes 3 us.
 */
export class GatewayCall implements Call {
  readonly served: ServedMethod;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly deadline: number;
  /** Raw request body (REST only). */
  body: AsyncIterable<Uint8Array> | undefined;
  /** Headers of the response or problem: the request id, and those set by policies and the method. */
  readonly responseHeaders: Record<string, string>;
  readonly #peer: Peer;
  readonly #span: TraceSpan | undefined;
  #principal: Principal | undefined;
  #attempt: MethodAttempt | undefined;
  #controller: AbortController | undefined;
  #ended: { readonly reason: unknown } | undefined;
  #traceparent: string | undefined;
  #audit: Call["audit"] | undefined;
  #join: Call["joinSession"] | undefined;
  #start: PromiseWithResolvers<string> | undefined;
  /** Credentials of the caller, once parsed. */
  bearer: Bearer | undefined;
  /** Bucket shown in the rate-limit headers of the response. */
  shown: BucketState | undefined;
  /** Whether tokens were drawn from the method's own buckets and not refunded. */
  hasDrawn = false;
  /** Whether the method has started the operation that the tokens pay for. The tokens are then not refunded. */
  isCharged = false;
  /** Whether the method found nothing to change. */
  isUnchanged = false;
  /** Whether the method created a resource. */
  isCreated = false;
  /** Size of the raw response body in bytes, if announced. */
  announcedBytes: number | undefined;
  /** Bytes that the gateway holds for the call, once admitted. */
  buffer: ClientBuffer | undefined;
  /** Whether the end of the call was counted. */
  isOver = false;
  /** Slug of the problem that ended the call, if any. */
  problem: ErrorSlug | undefined;
  /** Time of creation, in milliseconds of `performance.now()`. */
  readonly startedAt = performance.now();

  constructor(served: ServedMethod, peer: Peer, timeoutMs: number | undefined) {
    this.served = served;
    this.#peer = peer;
    this.requestId = peer.requestId;
    this.clientAddress = peer.clientAddress;
    this.responseHeaders = { "x-request-id": peer.requestId };
    this.deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.startedAt + timeoutMs;
    this.#span = openSpan(peer.header("traceparent"), served.name, { kind: "server", attributes: describe(served) });
  }

  /** Runs a part of the call in its trace span, if any. */
  within<T>(work: () => T): T {
    return this.#span ? this.#span.run(work) : work();
  }

  /** Ends the span of the call. `problem` is the slug of its failure. */
  endSpan(problem: string | undefined): void {
    this.#span?.end(problem);
  }

  get principal(): Principal {
    if (!this.#principal) throw new Error(`${this.served.method} has no principal`);
    return this.#principal;
  }

  set principal(principal: Principal) {
    this.#principal = principal;
  }

  /** Account of the caller, once known. */
  get accountId(): string | undefined {
    return this.#principal?.accountId;
  }

  /** Attempt of a method that stores its responses. Throws if the method stores none. */
  get attempt(): MethodAttempt {
    if (!this.#attempt) throw new Error(`${this.served.method} stores no responses, so it has no attempt`);
    return this.#attempt;
  }

  set attempt(attempt: MethodAttempt) {
    this.#attempt = attempt;
  }

  get ids(): MethodAttempt["ids"] {
    return this.attempt.ids;
  }

  get resumes(): boolean {
    return this.attempt.resumes;
  }

  get commit(): MethodAttempt["commit"] {
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
   * Aborts the signal of the call, because its client has disconnected, its deadline has passed or its stream has
   * ended. Has no effect on methods that run to completion, or if the call has an idempotency key under which its
   * response is stored.
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

  /** Shows a bucket in the response headers. */
  show(bucket: BucketState): void {
    this.shown = bucket;
    Object.assign(this.responseHeaders, rateLimitHeaders(bucket));
  }

  get traceparent(): string {
    this.#traceparent ??= this.#span?.traceparent ?? continueTrace(this.header("traceparent"));
    return this.#traceparent;
  }

  /** Sets the writer of audit log entries. Only methods with the option `audit` have one. */
  setAudit(write: Call["audit"]): void {
    this.#audit = write;
  }

  audit(tx: Tx, entry: AuditEntry): string {
    if (!this.#audit) throw new Error(`${this.served.name} has no option audit`);
    return this.#audit(tx, entry);
  }

  markUnchanged(): void {
    this.isUnchanged = true;
  }

  /** Whether the call resumes an operation that an earlier attempt started. */
  get isResumed(): boolean {
    return this.#attempt?.resumes ?? false;
  }

  /** Sets the function that counts the stream of the call for a session. If undefined, `joinSession` does nothing. */
  setJoinSession(join: Call["joinSession"] | undefined): void {
    this.#join = join;
  }

  async joinSession(sessionId: string): Promise<void> {
    await this.#join?.(sessionId);
  }

  /**
   * Resolves with the id of the event after which the stream of the call starts. Stays pending unless the method calls
   * `startAfter` after this property was first read.
   */
  get start(): Promise<string> {
    this.#start ??= Promise.withResolvers();
    return this.#start.promise;
  }

  startAfter(eventId: string): void {
    this.#start?.resolve(eventId);
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

  /** Whether the credentials are part of the path or query, which proxies write to their logs. */
  get hasBearerInPath(): boolean {
    return this.#peer.hasBearerInPath;
  }

  setHeader(name: string, value: string): void {
    this.responseHeaders[name] = value;
  }
}

function describe({ name, route }: ServedMethod): SpanAttributes {
  const about = route && { "http.request.method": route.verb, "http.route": route.template };
  return { "rpc.method": name, ...about };
}

/**
 * Returns a `traceparent` (https://www.w3.org/TR/trace-context/) with a new span id, in the received trace or in a new
 * trace.
 */
function continueTrace(received: string | undefined): string {
  const parent = /^00-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$/.exec(received ?? "");
  const trace = parent?.[1] ?? randomBytes(16).toString("hex");
  return `00-${trace}-${randomBytes(8).toString("hex")}-${parent?.[2] ?? "00"}`;
}

/** Returns the four rate-limit headers of a response. */
export function rateLimitHeaders({ bucket, capacity, remaining, resetAt }: BucketState): Record<string, string> {
  return {
    "x-ratelimit-limit": String(capacity),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetAt),
    "x-ratelimit-bucket": bucket,
  };
}
