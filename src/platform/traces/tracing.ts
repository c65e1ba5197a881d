import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { ExportResultCode } from "@opentelemetry/core";
import { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { processIdentity } from "../release.ts";
import { enableSpans, openTelemetry } from "./spans.ts";

/** Sends an encoded ExportTraceServiceRequest of OTLP. Resolves with whether it was sent. */
export type SendSpans = (spans: Uint8Array) => Promise<boolean>;

export interface TracingOptions {
  readonly identity: ReturnType<typeof processIdentity>;
  /** Share to record of the traces that start in this process. */
  readonly share: number;
  readonly send: SendSpans;
}

/** The longest attribute is the name of a method or the template of a path. */
const longestAttribute = 128;

/** Minimum share to record of the calls from clients that record their traces. */
const minClientShare = 0.01;

/** Maximum number of queued spans, and of spans in a batch (about 200 KiB). If the queue is full, spans are lost. */
const sizes = { maxQueueSize: 8_192, maxExportBatchSize: 512 };

/** Registers the SDK for this process. Must run once. `stop` sends the queued spans. */
export function startTracing({ identity, share, send }: TracingOptions): { stop(): Promise<void> } {
  const { role, release, host } = identity;
  const exporter: SpanExporter = {
    export(spans, onResult) {
      const bytes = ProtobufTraceSerializer.serializeRequest(spans);
      const { SUCCESS, FAILED } = ExportResultCode;
      if (!bytes) return onResult({ code: FAILED });
      void send(bytes).then((wasSent) => onResult({ code: wasSent ? SUCCESS : FAILED }));
    },
    shutdown: async () => undefined,
  };
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      "service.name": `pilothouse-${role}`,
      "service.version": release,
      "service.instance.id": `${host}-${process.pid}`,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
    spanLimits: { attributeValueLengthLimit: longestAttribute },
    spanProcessors: [new BatchSpanProcessor({ exporter, ...sizes })],
  });
  openTelemetry.trace.setGlobalTracerProvider(provider);
  openTelemetry.context.setGlobalContextManager(new AsyncLocalStorageContextManager());
  enableSpans(Math.max(share, minClientShare));
  return { stop: () => provider.shutdown() };
}
