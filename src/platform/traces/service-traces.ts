import type { Part } from "../lifetime.ts";
import type { Log } from "../log.ts";
import { processIdentity } from "../release.ts";
import type { SpanCollector } from "./span-collector.ts";
import type { TraceConfig } from "./trace-config.ts";

/** Traces of a gateway, or of workers that send them through a control process. */
export interface ServiceTraces extends Required<Part> {
  /** Sends spans of a worker to the collector. Undefined if no collector is configured. */
  readonly forward: SpanCollector["forward"] | undefined;
}

/** Creates the part that exports traces. Its start does nothing if no collector is configured. */
export function createServiceTraces(
  traces: TraceConfig | undefined,
  role: "gateway" | "control",
  log: Log,
): ServiceTraces {
  let collector: SpanCollector | undefined;
  let tracing: { stop(): Promise<void> } | undefined;
  return {
    forward: traces && ((spans) => collector?.forward(spans)),
    async start() {
      if (!traces) return;
      // Loaded on demand, because the SDK takes memory and time at the start.
      const { createSpanCollector } = await import("./span-collector.ts");
      collector = createSpanCollector(traces.endpoint, log);
      // A control process runs no calls of clients, and so has no spans.
      if (role === "control") return;
      const { startTracing } = await import("./tracing.ts");
      tracing = startTracing({ identity: processIdentity(role), share: traces.share, send: collector.send });
    },
    async stop() {
      await tracing?.stop();
      await collector?.stop();
    },
  };
}
