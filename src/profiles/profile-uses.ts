import { create } from "@bufbuild/protobuf";
import type { EventLog } from "../events/event-log.ts";
import { SessionProfileSaveFailedEventSchema } from "../gen/pilothouse/v1/session_pb.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { ProfileMetrics } from "./profile-metrics.ts";
import { endUse, insertUse, type ProfileUse, settleLateUses, settleUse } from "./use-store.ts";

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
  /** Notes the end of a session; says whether its worker is about to have a save. */
  end(tx: Tx, end: ProfileSessionEnd): Promise<boolean>;
  /** The save of a session has failed, unless that is known or it was taken. */
  fail(tx: Tx, sessionId: string, detail: string): Promise<void>;
}

/** Makes the uses. */
export function createProfileUses({ events, metrics }: { events: EventLog; metrics: ProfileMetrics }): ProfileUses {
  async function tellFailure(tx: Tx, use: ProfileUse, detail: string): Promise<void> {
    const data = { sessionId: use.session_id, profileId: use.profile_id, detail };
    const owner = { accountId: use.account_id, subject: use.session_id };
    const event = create(SessionProfileSaveFailedEventSchema, data);
    await events.append(tx, owner, SessionProfileSaveFailedEventSchema, event);
    tx.afterCommit(() => metrics.saves.inc({ outcome: "failed" }));
  }

  return {
    async begin(tx, use) {
      for (const late of await settleLateUses(tx, use.profile_id)) {
        await tellFailure(tx, late, `the session ${use.session_id} has started with the profile`);
      }
      await insertUse(tx, use);
    },
    async end(tx, { sessionId, isUnused, isWorkerGone }) {
      if (isUnused) {
        await settleUse(tx, sessionId);
        return false;
      }
      await endUse(tx, sessionId, isWorkerGone ? 0 : times.held, times.due);
      return !isWorkerGone;
    },
    async fail(tx, sessionId, detail) {
      const use = await settleUse(tx, sessionId);
      if (use) await tellFailure(tx, use, detail);
    },
  };
}
