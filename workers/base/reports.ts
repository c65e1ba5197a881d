import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type WorkerEvent, WorkerEventSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";

/** Event of a session, as reported to the control process. */
export type ReportedEvent = NonNullable<MessageInitShape<typeof WorkerEventSchema>["event"]>;

const batchSize = 100;

/** Ordered session reports, kept until the control process acknowledges them. */
export class Reports {
  #waiting: WorkerEvent[] = [];
  /** One sequence for all sessions: a sequence per session could never be removed, since more reports may follow. */
  #sequence = 0n;

  append({ sessionId, placementEpoch }: Placement, event: ReportedEvent): void {
    this.#sequence += 1n;
    const sequence = this.#sequence;
    this.#waiting.push(create(WorkerEventSchema, { sessionId, placementEpoch, sequence, at: timestampNow(), event }));
  }

  /** The oldest unacknowledged reports, at most 100. */
  get batch(): readonly WorkerEvent[] {
    return this.#waiting.slice(0, batchSize);
  }

  /** Removes all reports up to an acknowledged sequence. */
  acknowledge(sequence: bigint): void {
    this.#waiting = this.#waiting.filter((report) => report.sequence > sequence);
  }
}

/** Placement of a session on a worker. Commands must match the worker's current placement. */
export interface Placement {
  readonly sessionId: string;
  readonly placementEpoch: bigint;
}
