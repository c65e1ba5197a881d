import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type WorkerEvent, WorkerEventSchema } from "../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Placement } from "./session/placement.ts";

/** Something that became of a session. */
export type Happening = NonNullable<MessageInitShape<typeof WorkerEventSchema>["event"]>;

/** Events sent at once. */
const BATCH = 100;

/** What has become of sessions, in order, until a gateway has acknowledged it. */
export class EventLog {
  readonly #pending: WorkerEvent[] = [];
  /** Events so far, of all sessions: who has no more of them need not be known. */
  #sequence = 0n;

  /** Appends an event of a session. */
  append({ sessionId, placementEpoch }: Placement, event: Happening): void {
    this.#sequence += 1n;
    const sequence = this.#sequence;
    this.#pending.push(create(WorkerEventSchema, { sessionId, placementEpoch, sequence, at: timestampNow(), event }));
  }

  /** The oldest events that wait. */
  get batch(): readonly WorkerEvent[] {
    return this.#pending.slice(0, BATCH);
  }

  /** Drops the oldest events, which have been acknowledged. */
  acknowledge(count: number): void {
    this.#pending.splice(0, count);
  }
}
