import { create } from "@bufbuild/protobuf";
import type { WorkerEventKey } from "../events/store.ts";
import type { SessionKeeper, WorkerIncarnation } from "../fleet/session-keeper.ts";
import { type HeldSession, HeldSessionSchema, type WorkerEvent } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  SessionChallengeDetectedEventSchema,
  SessionChallengeResolvedEventSchema,
  SessionEgressCapabilityChangedEventSchema,
} from "../gen/pilothouse/v1/session_pb.ts";
import { IdleMap } from "../platform/idle-map.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { SessionLogStore } from "./logs/session-log-store.ts";
import { endSession, endSessions, type SessionEndParts } from "./session-end.ts";
import { toStoredReason } from "./session-message.ts";
import { isEnded } from "./session-states.ts";
import { findRunningOf, lockRunning, lockSession, overdueExist, type SessionRow, transition } from "./store.ts";

/**
 * Milliseconds that a live or paused session may be missing from its worker before it is ended. If the session has
 * ended on the worker, the worker's report arrives sooner.
 */
const missingFor = 6_000;

export interface SessionKeeperParts extends SessionEndParts, Pick<PlatformParts, "db" | "clock"> {
  /** Stores the logs of ended sessions. Undefined if the process has no keys to seal logs. */
  readonly sessionLogStore?: SessionLogStore | undefined;
}

/** Creates the handler of session ends and changes that the fleet reports. */
export function createSessionKeeper(parts: SessionKeeperParts): SessionKeeper {
  const { db, clock, events, bus } = parts;
  /** Time at which a session was first missing from its worker (`clock.monotonic`), by session. */
  const missing = new IdleMap<string, number>(10 * missingFor, parts);

  /** Applies a worker event to its locked session. */
  async function applyTo(
    tx: Tx,
    session: SessionRow,
    workerKey: WorkerEventKey,
    { event }: WorkerEvent,
    agoMs: () => number,
  ): Promise<void> {
    const owner = { accountId: session.account_id, subject: session.id, workerKey };
    const sessionId = session.id;
    switch (event.case) {
      case "ended": {
        const reason = toStoredReason(event.value.reason) ?? "crashed";
        await endSession(parts, tx, sessionId, { reason, detail: event.value.detail, workerKey, agoMs: agoMs() });
        return;
      }
      case "challengeSeen": {
        const { challenge: kind, url, paused } = event.value;
        const data = create(SessionChallengeDetectedEventSchema, { sessionId, kind, url, paused });
        const isNew = await events.append(tx, owner, SessionChallengeDetectedEventSchema, data);
        if (isNew && paused) await transition(tx, sessionId, "challenged", { pause_reason: kind });
        break;
      }
      case "challengeGone": {
        const data = create(SessionChallengeResolvedEventSchema, { sessionId });
        const isNew = await events.append(tx, owner, SessionChallengeResolvedEventSchema, data);
        if (isNew) await transition(tx, sessionId, "resolved", { pause_reason: null });
        break;
      }
      case "egressChanged": {
        const { capability, reason } = event.value;
        const init = { sessionId, capability, ...(reason !== "" && { reason }) };
        const data = create(SessionEgressCapabilityChangedEventSchema, init);
        await events.append(tx, owner, SessionEgressCapabilityChangedEventSchema, data);
        break;
      }
      case undefined:
        // Sent only by a worker of a later release.
        return;
      default:
        event satisfies never;
    }
    tx.afterCommit(() => bus.publish("session-changed", sessionId));
  }

  /** Ends sessions that have been missing from their worker for longer than `missingFor`. */
  async function endMissing(workerId: string, running: readonly string[], held: ReadonlySet<string>): Promise<void> {
    const now = clock.monotonic();
    for (const id of running) {
      if (held.has(id)) missing.delete(id);
      else if (missing.get(id) === undefined) missing.set(id, now);
    }
    const overdue = running.filter((id) => now - (missing.get(id) ?? now) > missingFor);
    if (overdue.length === 0) return;
    const detail = `the worker ${workerId} no longer has the session`;
    await db.transaction(async (tx) => {
      await endSessions(parts, tx, await lockRunning(tx, { ids: overdue }), { reason: "crashed", detail });
    });
  }

  return {
    async endAllOf(tx, workerId, end) {
      return endSessions(parts, tx, await lockRunning(tx, { workerId }), { ...end, isWorkerGone: true });
    },
    async endOrphaned(tx, end) {
      return endSessions(parts, tx, await lockRunning(tx, "orphaned"), { ...end, isWorkerGone: true });
    },
    overdueExist,
    async endOverdue(tx) {
      const late = { reason: "failed_to_start", detail: "the browser was not ready in time" } as const;
      const unready = await endSessions(parts, tx, await lockRunning(tx, "unready"), late);
      return unready + (await endSessions(parts, tx, await lockRunning(tx, "expired"), { reason: "expired" }));
    },
    async apply(tx, { workerId, incarnation }: WorkerIncarnation, event, agoMs) {
      const session = await lockSession(tx, event.sessionId);
      if (!session || isEnded(session.status)) return;
      if (session.worker_id !== workerId || BigInt(session.placement_epoch) !== event.placementEpoch) return;
      const { placementEpoch, sequence } = event;
      await applyTo(tx, session, { placementEpoch, incarnation, sequence }, event, agoMs);
    },
    storeLogs: parts.sessionLogStore?.store,
    async unwanted(workerId, held) {
      const running = await findRunningOf(db, workerId);
      const epochs = new Map(running.map(({ id, placement_epoch }) => [id, BigInt(placement_epoch)]));
      const live = running.filter(({ status }) => status !== "provisioning").map(({ id }) => id);
      await endMissing(workerId, live, new Set(held.map(({ sessionId }) => sessionId)));
      return held.filter(({ sessionId, placementEpoch }: HeldSession) => epochs.get(sessionId) !== placementEpoch);
    },
    async settledProfiles(workerId, pending) {
      const settled = await parts.profiles.uses.announcePending(workerId, pending);
      return settled.map(({ sessionId, placementEpoch }) => create(HeldSessionSchema, { sessionId, placementEpoch }));
    },
  };
}
