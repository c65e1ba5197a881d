/** Who makes a call, as far as the bearer shows. */
export interface Principal {
  readonly accountId: string;
  readonly keyId: string;
  readonly tier: string;
  readonly scopes: ReadonlySet<string>;
}

/** What a service sees of a request, whatever transport it came by. */
export interface Call {
  readonly requestId: string;
  /** The caller. Reading it in a method marked `public` throws. */
  readonly principal: Principal;
  /** Aborts when the client has gone away or its deadline has passed. */
  readonly signal: AbortSignal;
  /** When the client stops waiting, in milliseconds of `performance.now()`; `Infinity` when it did not say. */
  readonly deadline: number;
  /** W3C trace context: the request's own, or one made for it. */
  readonly traceparent: string;
  /** The Idempotency-Key header. */
  readonly idempotencyKey: string | undefined;
  /** Draws one token for one message of a bidirectional stream. Throws `rate-limited`; that is the message's error. */
  draw(bucket: "global" | "agent_sessions:input_event"): Promise<void>;
  /** Reads a header of the request, by lower-case name. */
  header(name: string): string | undefined;
}
