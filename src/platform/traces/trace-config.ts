import { ConfigError, type EnvironmentReader } from "../environment.ts";

export interface TraceConfig {
  /** Base address of the collector, which receives spans at `/v1/traces`. */
  readonly endpoint: string;
  /**
   * Share of traces to record, from 0 to 1. Applies to traces that start in this process. For calls of clients that
   * record their traces, the minimum is 1 %.
   */
  readonly share: number;
}

/** Reads the trace settings. Returns undefined if no traces are exported. */
export function readTraces(read: EnvironmentReader): TraceConfig | undefined {
  const endpoint = read.url("OTEL_EXPORTER_OTLP_ENDPOINT", ["http:", "https:"]);
  const share = read.text("OTEL_TRACES_SAMPLER_ARG") ?? "1";
  if (!/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/.test(share))
    throw new ConfigError("OTEL_TRACES_SAMPLER_ARG", "accepts a share of the traces from `0` to `1`, such as `0.1`");
  return endpoint === undefined ? undefined : { endpoint, share: Number(share) };
}
