import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ReportRequest, WorkerEvent } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { Failure } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { isContention, isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import type { SessionKeeper, WorkerIncarnation } from "./session-keeper.ts";
import { lockIncarnation } from "./store.ts";
import { supersededIncarnation } from "./worker-heartbeats.ts";

export interface WorkerReportParts extends Pick<PlatformParts, "db" | "clock" | "log"> {
  readonly keeper: SessionKeeper;
}

/** An event with its age in milliseconds, which grows until the event is applied. */
interface DatedEvent {
  readonly event: WorkerEvent;
  readonly agoMs: () => number;
}

/** Returns whether the same report may succeed later. */
function isTransient(error: unknown): boolean {
  return isDatabaseUnavailable(error) || isContention(error) || (error instanceof Failure && error.slug === "conflict");
}

/** Returns the age of an event in milliseconds when its report was sent. */
function agoOf({ at }: WorkerEvent, sentAt: Timestamp | undefined): number {
  return at && sentAt ? Math.max(0, timestampMs(sentAt) - timestampMs(at)) : 0;
}

function applyAll(
  { db, keeper }: WorkerReportParts,
  from: WorkerIncarnation,
  events: readonly DatedEvent[],
): Promise<void> {
  return db.transaction(async (tx) => {
    if (!(await lockIncarnation(tx, from.workerId, from.incarnation))) throw supersededIncarnation();
    for (const { event, agoMs } of events) await keeper.apply(tx, from, event, agoMs);
  });
}

/**
 * Applies events one by one after the batch failed. An event that fails by itself is skipped, because retries would
 * block all other events of the worker.
 */
async function applyEach(
  parts: WorkerReportParts,
  from: WorkerIncarnation,
  events: readonly DatedEvent[],
  failure: unknown,
): Promise<void> {
  if (isTransient(failure)) throw failure;
  for (const dated of events) {
    await applyAll(parts, from, [dated]).catch((error: unknown) => {
      if (isTransient(error)) throw error;
      const { sessionId, event } = dated.event;
      parts.log.error(
        { err: error, worker_id: from.workerId, session_id: sessionId, event: event.case },
        "failed to apply worker event; skipped",
      );
    });
  }
}

/** Applies the events of a report in one transaction, or one by one if the transaction fails permanently. */
export async function applyReport(
  parts: WorkerReportParts,
  from: WorkerIncarnation,
  { events, sentAt }: ReportRequest,
  receivedAt: number,
): Promise<void> {
  // Age includes the wait for PostgreSQL: during a hang, a report is applied up to 12 s after receipt.
  const dated = events.map((event) => ({
    event,
    agoMs: () => Math.round(agoOf(event, sentAt) + parts.clock.monotonic() - receivedAt),
  }));
  await applyAll(parts, from, dated).catch((error) => applyEach(parts, from, dated, error));
}
