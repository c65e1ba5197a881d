import { create } from "@bufbuild/protobuf";
import { ControlService, ExportSpansRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { processIdentity } from "../../src/platform/release.ts";
import type { startTracing } from "../../src/platform/traces/tracing.ts";
import type { Log } from "../base/log.ts";
import type { FleetLink } from "./fleet-link.ts";

/**
 * Sends the spans of a worker through a control process. A worker needs no credentials for the collector and no
 * connection to the collector. Spans that cannot be sent at once are lost.
 */
export class SpanSender {
  readonly #link: Pick<FleetLink, "call" | "exportsSpans">;
  readonly #log: Log;
  #starting: Promise<ReturnType<typeof startTracing> | undefined> | undefined;

  constructor(link: Pick<FleetLink, "call" | "exportsSpans">, log: Log) {
    this.#link = link;
    this.#log = log;
  }

  /** Starts tracing, unless it has started. */
  start(): void {
    this.#starting ??= this.#load().catch((error: unknown) => {
      this.#log.error({ err: error }, "failed to start tracing");
      return undefined;
    });
  }

  /** Sends the pending spans. */
  async stop(): Promise<void> {
    await (await this.#starting)?.stop();
  }

  async #load(): Promise<ReturnType<typeof startTracing>> {
    // Loaded on demand, because the SDK takes memory and time at the start.
    const { startTracing } = await import("../../src/platform/traces/tracing.ts");
    return startTracing({
      identity: processIdentity("worker"),
      // The worker's spans belong to traces of gateways, and the gateways decide which traces are sampled.
      share: 0,
      send: (spans) => this.#send(spans),
    });
  }

  async #send(spans: Uint8Array): Promise<boolean> {
    if (!this.#link.exportsSpans) return false;
    const request = create(ExportSpansRequestSchema, { spans });
    const answer = await this.#link.call(ControlService.method.exportSpans, () => request);
    return answer !== undefined;
  }
}
