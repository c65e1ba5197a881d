import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import type { Log } from "../log.ts";
import type { SendSpans } from "./tracing.ts";

/** Maximum concurrent requests to the collector. Further spans are lost, so that a slow collector delays nothing. */
const concurrencyLimit = 4;

/** Maximum size in bytes of the spans that a worker sends at once. Larger batches are lost. */
const longestBatch = 1024 * 1024;

/** Sends spans to the operator's collector. */
export interface SpanCollector {
  readonly send: SendSpans;
  /** Sends spans of a worker, which has no credentials for the collector. Returns at once. */
  forward(spans: Uint8Array): void;
  stop(): Promise<void>;
}

/** Creates a sender of OTLP over HTTP. Headers, certificates and timeouts are read from the OTLP variables. */
export function createSpanCollector(endpoint: string, log: Log): SpanCollector {
  const headers = { "Content-Type": "application/x-protobuf" };
  const options = { url: `${endpoint}/v1/traces`, concurrencyLimit };
  const delegate = createOtlpHttpExportDelegate<Uint8Array, undefined>(
    convertLegacyHttpOptions(options, "TRACES", "v1/traces", headers),
    { serializeRequest: (spans) => spans, deserializeResponse: () => undefined },
    "otlp_http_span_exporter",
    { name: "span", countItems: () => 0 },
    undefined,
  );
  /** Whether the last request failed. Only the first of consecutive failures is logged. */
  let isFailing = false;
  async function send(spans: Uint8Array): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<ExportResult>();
    delegate.export(spans, resolve);
    const { code, error } = await promise;
    const hasFailed = code !== ExportResultCode.SUCCESS;
    if (hasFailed && !isFailing) log.warn({ reason: error?.message }, "failed to export traces; spans are lost");
    isFailing = hasFailed;
    return !hasFailed;
  }
  return {
    send,
    forward(spans) {
      if (spans.length <= longestBatch) void send(spans);
    },
    stop: () => delegate.shutdown(),
  };
}
