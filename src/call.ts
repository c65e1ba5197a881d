import type { Message } from "@bufbuild/protobuf";
import type { Tx } from "./platform/database.ts";
import type { Failure } from "./platform/errors.ts";
import type { Ids } from "./platform/ids.ts";

/** Who makes a call, as far as the bearer shows. */
export interface Principal {
  readonly accountId: string;
  readonly keyId: string;
  readonly tier: string;
  readonly scopes: ReadonlySet<string>;
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
  /** Draws one token for one message of a bidirectional stream. Throws `rate-limited`; that is the message's error. */
  draw(bucket: "global" | "agent_sessions:input_event"): Promise<void>;
  /** Reads a header of the request, by lower-case name. */
  header(name: string): string | undefined;
}
