import { create } from "@bufbuild/protobuf";
import type { EventLog } from "../events/event-log.ts";
import type { PendingProfile } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionProfileSaveFailedEventSchema } from "../gen/pilothouse/v1/session_pb.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { ProfileMetrics } from "./profile-metrics.ts";
import { endUse, findOutstanding, insertUse, type ProfileUse, settleLateUses, settleUse } from "./use-store.ts";

/** Milliseconds after the end of a session. */
const times = {
  /**
   * Time for which other sessions wait for a save: the worker closes the browser, packs the profile for at most 5 s,
   * and sends up to 32 MiB.
   */
  held: 20_000,
  /** Time after which a missing save counts as failed. A worker that restarts reconnects sooner. */
  due: 600_000,
};

/** End of a session that used a profile. */
export interface ProfileSessionEnd {
  readonly sessionId: string;
  /** Whether the session never became live, so that there is nothing to save. */
  readonly isUnused: boolean;
  /** Whether the worker is lost, so that other sessions do not wait for a save. */
  readonly isWorkerGone: boolean;
}

/** Uses of profiles by sessions. Each use ends once: with an accepted save, a failed save and its event, or no save. */
export interface ProfileUses {
  /** Starts the use of a reserved profile. Outstanding saves of ended sessions fail. */
  begin(tx: Tx, use: ProfileUse): Promise<void>;
  /** Records the end of a session. Announces the save to the gateways, unless `isUnused` or `isWorkerGone`. */
  end(tx: Tx, end: ProfileSessionEnd): Promise<void>;
  /** Records the failure of a session's save, unless the save was already settled. */
  fail(tx: Tx, sessionId: string, detail: string): Promise<void>;
  /**
   * Announces again the saves that a worker reports as pending, and records the failures that the worker reports.
   * Returns the saves that the worker need not keep.
   */
  announcePending(workerId: string, pending: readonly PendingProfile[]): Promise<PendingProfile[]>;
}

export interface ProfileUsesParts extends Pick<PlatformParts, "db" | "bus"> {
  readonly events: EventLog;
  readonly metrics: ProfileMetrics;
}

export function createProfileUses({ db, bus, events, metrics }: ProfileUsesParts): ProfileUses {
  async function notifyFailure(tx: Tx, use: ProfileUse, detail: string): Promise<void> {
    const data = { sessionId: use.session_id, profileId: use.profile_id, detail };
    const owner = { accountId: use.account_id, subject: use.session_id };
    const event = create(SessionProfileSaveFailedEventSchema, data);
    await events.append(tx, owner, SessionProfileSaveFailedEventSchema, event);
    tx.afterCommit(() => metrics.saves.inc({ outcome: "failed" }));
  }

  async function fail(tx: Tx, sessionId: string, detail: string): Promise<void> {
    const use = await settleUse(tx, sessionId);
    if (use) await notifyFailure(tx, use, detail);
  }

  return {
    fail,
    async begin(tx, use) {
      for (const late of await settleLateUses(tx, use.profile_id)) {
        await notifyFailure(tx, late, `the session ${use.session_id} has started with the profile`);
      }
      await insertUse(tx, use);
    },
    async end(tx, { sessionId, isUnused, isWorkerGone }) {
      if (isUnused) {
        await settleUse(tx, sessionId);
        return;
      }
      await endUse(tx, sessionId, isWorkerGone ? 0 : times.held, times.due);
      if (!isWorkerGone) tx.afterCommit(() => bus.publish("profile-offered", sessionId));
    },
    async announcePending(workerId, pending) {
      if (pending.length === 0) return [];
      const sessionIds = pending.map(({ sessionId }) => sessionId);
      const outstanding = await findOutstanding(db, workerId, sessionIds);
      const settled: PendingProfile[] = [];
      for (const profile of pending) {
        const { sessionId, placementEpoch, failure } = profile;
        const use = outstanding.find(({ session_id }) => session_id === sessionId);
        if (!use || BigInt(use.placement_epoch) !== placementEpoch) settled.push(profile);
        else if (failure !== "")
          await db.transaction((tx) => fail(tx, sessionId, failure)).then(() => settled.push(profile));
        // If `due_at` is null, the end of the session is not recorded yet. Recording the end announces the save.
        else if (use.due_at !== null) bus.publish("profile-offered", sessionId);
      }
      return settled;
    },
  };
}
