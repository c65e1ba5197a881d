import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type WorkerEvent, WorkerEventSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Placement } from "./placement.ts";

/** Something that became of a session. */
export type Happening = NonNullable<MessageInitShape<typeof WorkerEventSchema>["event"]>;

/** Reports sent at once. */
const batchSize = 100;

/** What has become of sessions, in order, until a gateway has acknowledged it. */
export class Reports {
  #waiting: WorkerEvent[] = [];
  /** Counted over all sessions: a count for each would have to know which sessions have no more to report. */
  #sequence = 0n;

  /** Appends what became of a session. */
  append({ sessionId, placementEpoch }: Placement, event: Happening): void {
    this.#sequence += 1n;
    const sequence = this.#sequence;
    this.#waiting.push(create(WorkerEventSchema, { sessionId, placementEpoch, sequence, at: timestampNow(), event }));
  }

  /** The oldest that wait. */
  get batch(): readonly WorkerEvent[] {
    return this.#waiting.slice(0, batchSize);
  }

  /** Drops all up to one, which have been acknowledged. */
  acknowledge(sequence: bigint): void {
    this.#waiting = this.#waiting.filter((report) => report.sequence > sequence);
  }
}
