import { createRequire } from "node:module";
import type * as Api from "@opentelemetry/api";
import { asFailure } from "../errors.ts";

/** The CommonJS copy of the package, which prom-client loads too. `import` would load another copy of 51 files. */
export const openTelemetry: typeof Api = createRequire(import.meta.url)("@opentelemetry/api");

const { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } = openTelemetry;

/**
 * Attributes of spans. The type is closed, because spans leave the service: none may contain a token, an address, or
 * text of a page or person.
 */
export interface SpanAttributes {
  readonly "cdp.method"?: string;
  readonly "db.system.name"?: "postgresql";
  readonly "error.type"?: string;
  readonly "gen_ai.operation.name"?: "chat";
  readonly "gen_ai.provider.name"?: string;
  readonly "gen_ai.response.id"?: string;
  readonly "gen_ai.usage.input_tokens"?: number;
  readonly "gen_ai.usage.output_tokens"?: number;
  readonly "http.request.method"?: string;
  /** Template of the path, without values. */
  readonly "http.route"?: string;
  readonly "pilothouse.job.attempt"?: number;
  readonly "pilothouse.job.outcome"?: string;
  readonly "pilothouse.session.id"?: string;
  readonly "rpc.method"?: string;
}

export interface SpanOptions {
  readonly kind?: keyof typeof kinds;
  readonly attributes?: SpanAttributes;
}

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
};

const tracer = trace.getTracer("pilothouse");

let isOn = false;

/** Share of calls to record if the client records its trace. */
let clientShare = 1;

/** Makes the functions of this module create spans. Called once an SDK is registered. */
export function enableSpans(shareOfClients: number): void {
  isOn = true;
  clientShare = shareOfClients;
}

/** A span that has not ended. */
export class TraceSpan {
  readonly #span: Api.Span;
  readonly #context: Api.Context;

  constructor(name: string, { kind = "internal", attributes = {} }: SpanOptions, parent: Api.Context) {
    this.#span = tracer.startSpan(name, { kind: kinds[kind], attributes: { ...attributes } }, parent);
    this.#context = trace.setSpan(parent, this.#span);
  }

  /** W3C trace context of the span. */
  get traceparent(): string {
    return traceparentOf(this.#span);
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes({ ...attributes });
  }

  /** Runs `work` as part of the span. */
  run<T>(work: () => T): T {
    return context.with(this.#context, work);
  }

  /** Ends the span. `problem` is the slug of its failure; the text of an error may contain addresses of pages. */
  end(problem?: string): void {
    if (problem !== undefined) this.#span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute("error.type", problem);
    this.#span.end();
  }
}

type Work<T> = (span?: TraceSpan) => Promise<T>;

/**
 * Runs `work` in a span within the active span. Without an active span that is recorded, creates none, so background
 * tasks have no traces. An ended span has no children: timers and pipes keep the context in which they were created.
 */
export function inSpan<T>(name: string, options: SpanOptions, work: Work<T>): Promise<T> {
  return activeSpan() ? runIn(new TraceSpan(name, options, context.active()), work) : work();
}

/** Runs `work` in the first span of a trace. */
export function inNewTrace<T>(name: string, options: SpanOptions, work: Work<T>): Promise<T> {
  return isOn ? runIn(new TraceSpan(name, options, ROOT_CONTEXT), work) : work();
}

/** Runs `work` in a span that continues a trace of another process. Without such a trace, creates no span. */
export function inTraceOf<T>(traceparent: string, name: string, options: SpanOptions, work: Work<T>): Promise<T> {
  const parent = isOn ? remoteContext(traceparent) : undefined;
  return parent ? runIn(new TraceSpan(name, options, parent), work) : work();
}

/**
 * Starts a span that continues the trace of a client, or starts a trace. Returns undefined if tracing is off. If the
 * client records its trace, records a random `clientShare` of calls. Sampling by trace id would not be random, because
 * clients choose these ids.
 */
export function openSpan(traceparent: string | undefined, name: string, options: SpanOptions): TraceSpan | undefined {
  if (!isOn) return undefined;
  const flags = Math.random() < clientShare ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return new TraceSpan(name, options, remoteContext(traceparent ?? "", flags) ?? ROOT_CONTEXT);
}

/** Returns the W3C trace context of the active span; undefined if no active span is recorded. */
export function activeTraceparent(): string | undefined {
  const span = activeSpan();
  return span && traceparentOf(span);
}

/** Returns `work` bound to the active span, for queues that call it in the context of other work. */
export function withinActiveSpan<T>(work: () => T): () => T {
  return isOn ? context.bind(context.active(), work) : work;
}

function activeSpan(): Api.Span | undefined {
  if (!isOn) return undefined;
  const span = trace.getActiveSpan();
  return span?.isRecording() ? span : undefined;
}

async function runIn<T>(span: TraceSpan, work: Work<T>): Promise<T> {
  try {
    const value = await span.run(() => work(span));
    span.end();
    return value;
  } catch (thrown) {
    span.end(asFailure(thrown).slug);
    throw thrown;
  }
}

function traceparentOf(span: Api.Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/**
 * Parses a W3C trace context (https://www.w3.org/TR/trace-context/). Keeps only the flags in `accepted`. Returns
 * undefined if the context is absent or invalid.
 */
function remoteContext(traceparent: string, accepted = TraceFlags.SAMPLED): Api.Context | undefined {
  const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & accepted, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, remote);
}
