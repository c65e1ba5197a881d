import { create } from "@bufbuild/protobuf";
import type { EventLog } from "../events/event-log.ts";
import type { PendingProfile } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionProfileSaveFailedEventSchema } from "../gen/pilothouse/v1/session_pb.ts";
import type { Bus } from "../platform/bus.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { ProfileMetrics } from "./profile-metrics.ts";
import { endUse, findOwing, insertUse, type ProfileUse, settleLateUses, settleUse } from "./use-store.ts";

/** Milliseconds after a session's end. */
const times = {
  /** Others wait for a save this long: the worker closes the browser, packs for 5 s at most, and sends 32 MiB. */
  held: 20_000,
  /** A save that comes later has failed: a worker that comes back does so sooner. */
  due: 600_000,
};

/** What the end of a session means for its profile. */
export interface ProfileSessionEnd {
  readonly sessionId: string;
  /** The session never became live: there is nothing to save. */
  readonly isUnused: boolean;
  /** Its worker is gone: nobody waits for a save that may never come. */
  readonly isWorkerGone: boolean;
}

/** Which sessions have which profiles. Each use ends once: its save is taken, or it fails with its event. */
export interface ProfileUses {
  /** Gives a reserved profile to a session. Saves of earlier sessions that have not come yet have failed by that. */
  begin(tx: Tx, use: ProfileUse): Promise<void>;
  /** Notes the end of a session. A save that its worker is about to have is offered to the gateways. */
  end(tx: Tx, end: ProfileSessionEnd): Promise<void>;
  /** The save of a session has failed, unless that is known or it was taken. */
  fail(tx: Tx, sessionId: string, detail: string): Promise<void>;
  /** Offers again what waits on a worker; gives those of which nothing is wanted any more. */
  offered(workerId: string, pending: readonly PendingProfile[]): Promise<PendingProfile[]>;
}

export interface ProfileUsesParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly events: EventLog;
  readonly metrics: ProfileMetrics;
}

/** Makes the uses. */
export function createProfileUses({ db, bus, events, metrics }: ProfileUsesParts): ProfileUses {
  async function tellFailure(tx: Tx, use: ProfileUse, detail: string): Promise<void> {
    const data = { sessionId: use.session_id, profileId: use.profile_id, detail };
    const owner = { accountId: use.account_id, subject: use.session_id };
    const event = create(SessionProfileSaveFailedEventSchema, data);
    await events.append(tx, owner, SessionProfileSaveFailedEventSchema, event);
    tx.afterCommit(() => metrics.saves.inc({ outcome: "failed" }));
  }

  async function fail(tx: Tx, sessionId: string, detail: string): Promise<void> {
    const use = await settleUse(tx, sessionId);
    if (use) await tellFailure(tx, use, detail);
  }

  return {
    fail,
    async begin(tx, use) {
      for (const late of await settleLateUses(tx, use.profile_id)) {
        await tellFailure(tx, late, `the session ${use.session_id} has started with the profile`);
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
    async offered(workerId, pending) {
      if (pending.length === 0) return [];
      const sessionIds = pending.map(({ sessionId }) => sessionId);
      const owing = await findOwing(db, workerId, sessionIds);
      const settled: PendingProfile[] = [];
      for (const profile of pending) {
        const { sessionId, placementEpoch, failure } = profile;
        const use = owing.find(({ session_id }) => session_id === sessionId);
        if (!use || BigInt(use.placement_epoch) !== placementEpoch) settled.push(profile);
        else if (failure !== "")
          await db.transaction((tx) => fail(tx, sessionId, failure)).then(() => settled.push(profile));
        // Before the session's end is known its report is on its way.
        else if (use.due_at !== null) bus.publish("profile-offered", sessionId);
      }
      return settled;
    },
  };
}
