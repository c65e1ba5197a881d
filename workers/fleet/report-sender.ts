import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { ControlService, ReportRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import type { Reports } from "../base/reports.ts";
import type { FleetLink } from "./fleet-link.ts";

const pollMs = 100;

/** Sends reports to a control process in order, one batch at a time. */
export class ReportSender {
  readonly #reports: Reports;
  readonly #link: FleetLink;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(reports: Reports, link: FleetLink) {
    this.#reports = reports;
    this.#link = link;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Sends the remaining reports. Reports that fail at this attempt are lost. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#sendAll();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#sendAll();
      await sleep(pollMs, signal);
    }
  }

  /** Sends batches until none is left or a call fails. */
  async #sendAll(): Promise<void> {
    for (;;) {
      const events = [...this.#reports.batch];
      const last = events.at(-1);
      if (!last) return;
      const answer = await this.#link.call(ControlService.method.report, (incarnation) =>
        create(ReportRequestSchema, { incarnation, events, sentAt: timestampNow() }),
      );
      if (!answer) return;
      this.#reports.acknowledge(last.sequence);
    }
  }
}
