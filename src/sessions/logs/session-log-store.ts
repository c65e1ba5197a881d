import type { EndedSessionLog } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { SecretContext } from "../../platform/secrets/secrets-sealer.ts";
import { createPartition, dayOf, findLogOwners, insertLogs } from "./store.ts";

/** Maximum bytes of a log, and of the logs of one call, with a margin for the encoding. */
const sizes = { log: 64 * 1024, call: 2 * 1024 * 1024 };

/** Maximum number of concurrent calls. The logs of further calls are dropped, so that they do not delay heartbeats. */
const maxConcurrent = 2;

/** Stores the logs of ended sessions that workers send. */
export interface SessionLogStore {
  /** Stores logs, and returns the number stored. Never rejects. A log that cannot be stored now is dropped. */
  store(workerId: string, logs: readonly EndedSessionLog[]): Promise<number>;
}

type SessionLogStoreParts = Pick<PlatformParts, "db" | "sealer" | "clock" | "log">;

/** Context in which the log of a session is sealed. */
export const logContext = (accountId: string, sessionId: string): SecretContext => ({
  accountId,
  purpose: `session-log:${sessionId}`,
});

export function createSessionLogStore({ db, sealer, clock, log }: SessionLogStoreParts): SessionLogStore {
  let running = 0;
  /** Day for which the partition is known to exist; empty if unknown. */
  let preparedDay = "";

  async function storeAll(workerId: string, logs: readonly EndedSessionLog[]): Promise<number> {
    // A control process starts before the gateway that creates the key file of a new installation.
    await sealer.start();
    const owners = await findLogOwners(
      db,
      workerId,
      logs.map(({ sessionId }) => sessionId),
    );
    const accounts = new Map(owners.map((owner) => [`${owner.id} ${owner.placement_epoch}`, owner.account_id]));
    const sealed = logs.flatMap(({ sessionId, placementEpoch, data }) => {
      const accountId = accounts.get(`${sessionId} ${placementEpoch}`);
      if (accountId === undefined || data.length > sizes.log) return [];
      return [{ sessionId, accountId, data: sealer.seal(data, logContext(accountId, sessionId)) }];
    });
    if (sealed.length === 0) return 0;
    const day = dayOf(clock.now());
    if (preparedDay !== day) await createPartition(db, day);
    preparedDay = day;
    return db.transaction((tx) => insertLogs(tx, day, sealed));
  }

  return {
    async store(workerId, logs) {
      const bytes = logs.reduce((sum, { data }) => sum + data.length, 0);
      if (running >= maxConcurrent || logs.length === 0 || bytes > sizes.call) return 0;
      running += 1;
      try {
        return await storeAll(workerId, logs);
      } catch (error) {
        preparedDay = "";
        log.warn({ err: error, worker_id: workerId, logs: logs.length }, "failed to store session logs");
        return 0;
      } finally {
        running -= 1;
      }
    },
  };
}
