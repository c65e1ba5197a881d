import { lockAccount } from "../accounts/store.ts";
import type { EventLog } from "../events/event-log.ts";
import type { Channels } from "../fleet/channels.ts";
import type { Limits } from "../limits/limits.ts";
import { monthAt } from "../limits/month.ts";
import { reportThresholds } from "../limits/quota-events.ts";
import type { Mailer } from "../mail/mailer.ts";
import { counted } from "../platform/counted.ts";
import { fleetCommands, toCommand } from "../platform/grpc/fleet-commands.ts";
import { callServerStreaming } from "../platform/grpc/grpc-codec.ts";
import { statusToFailure } from "../platform/grpc/grpc-failure.ts";
import type { Part } from "../platform/lifetime.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import type { RepeatedTask } from "../platform/repeated-job.ts";
import { deleteOrphans, deleteStore } from "./chunk-store.ts";
import type { ProfileMetrics } from "./profile-metrics.ts";
import { InvalidStore, type UploadedStore, uploadStore } from "./profile-upload.ts";
import type { ProfileUses } from "./profile-uses.ts";
import { lockProfile, sumStorage, switchStore } from "./store.ts";
import {
  claimSave,
  findOverdue,
  findPlacedUse,
  type ProfileUse,
  renewClaim,
  settleUse,
  usesAreOverdue,
} from "./use-store.ts";

/** Milliseconds. */
const times = {
  /** Timeout for a transfer from a worker, which first closes the browser and packs the profile for at most 5 s. */
  transfer: 45_000,
  /** Lifetime of a claim that its gateway does not renew. */
  claim: 8_000,
  /** Interval at which a gateway renews its claim. */
  renew: 2_000,
  /**
   * Age at which a store that no profile refers to is deleted, and the interval of the deletions. No upload takes this
   * long.
   */
  orphan: 300_000,
};

/** Maximum number of concurrent saves. Each save buffers 0.5 MiB. */
const maxConcurrentSaves = 8;

/** Fetches the saves of ended sessions that are announced on the bus. Only one gateway fetches each save. */
export interface ProfileSaves extends Required<Part> {
  readonly jobs: readonly RepeatedTask[];
  readonly dueTasks: readonly DueTask[];
}

export interface ProfileSavesParts extends Pick<PlatformParts, "db" | "clock" | "bus" | "log" | "sealer"> {
  readonly events: EventLog;
  readonly metrics: ProfileMetrics;
  readonly limits: Limits;
  readonly mailer: Mailer;
  readonly uses: ProfileUses;
  readonly channels: Channels;
}

type PlacedUse = NonNullable<Awaited<ReturnType<typeof findPlacedUse>>>;

export function createProfileSaves(parts: ProfileSavesParts): ProfileSaves {
  const { db, clock, bus, log, metrics, limits, uses } = parts;
  const running = new Map<string, Promise<void>>();
  const waiting = new Set<string>();
  const stopping = new AbortController();
  let unsubscribe = (): void => undefined;

  const fail = (sessionId: string, detail: string): Promise<void> =>
    db.transaction((tx) => uses.fail(tx, sessionId, detail));

  /** Returns why an uploaded store cannot become the next version of the profile; undefined if it can. */
  async function findObstacle(tx: Tx, use: ProfileUse, { sizeBytes }: UploadedStore): Promise<string | undefined> {
    const account = await lockAccount(tx, use.account_id);
    const profile = await lockProfile(tx, use.profile_id, use.account_id);
    if (profile?.version !== use.version) return "the profile has changed since the session started";
    const tier = limits.of(account);
    const others = await sumStorage(tx, use.account_id, use.profile_id);
    const total = others + sizeBytes;
    // Thresholds are reported even if the save is rejected for exceeding the storage limit.
    await reportThresholds(parts, tx, {
      accountId: use.account_id,
      tier: tier.name,
      quota: "profile_storage_bytes",
      isMonthly: false,
      used: total,
      before: others + Number(profile.size_bytes),
      limit: tier.profileStorageBytes,
      month: monthAt(clock.now()),
    });
    if (tier.profileStorageIsSoft || total <= tier.profileStorageBytes) return undefined;
    return `the account's profiles would exceed their limit: ${counted(total, "byte")} of ${tier.profileStorageBytes}`;
  }

  /**
   * Makes a store the next version of the profile. If the store cannot become the next version, the save fails. No
   * effect if the save was already accepted or has failed.
   */
  async function commit(use: ProfileUse, { id, sizeBytes, engine }: UploadedStore): Promise<void> {
    await db.transaction(async (tx) => {
      const obstacle = await findObstacle(tx, use, { id, sizeBytes, engine });
      if (obstacle !== undefined) return uses.fail(tx, use.session_id, obstacle);
      if (!(await settleUse(tx, use.session_id))) return;
      await switchStore(tx, { id: use.profile_id, storeId: id, sizeBytes, engine });
      tx.afterCommit(() => {
        metrics.saves.inc({ outcome: "saved" });
        // Sessions that wait for the profile also wait for capacity.
        bus.publish("capacity", "");
      });
    });
    await deleteStore(db, id);
  }

  async function upload(use: PlacedUse): Promise<UploadedStore> {
    const { session_id: sessionId, worker_id: id, address, secret_hash: secretHash } = use;
    const link = parts.channels.to({ id, address, secretHash });
    const { takeProfile } = fleetCommands;
    const context = { sessionId, placementEpoch: BigInt(use.placement_epoch), timeoutMs: times.transfer };
    const command = toCommand(takeProfile, context, { profileId: use.profile_id });
    const options = { metadata: link.metadata, timeoutMs: times.transfer, signal: stopping.signal };
    return uploadStore(parts, callServerStreaming(link.client, takeProfile.method, command, options), use);
  }

  async function saveOne(sessionId: string): Promise<void> {
    if (!(await claimSave(db, sessionId, times.claim))) return;
    const renewFor = (ms: number): Promise<void> => renewClaim(db, sessionId, ms).catch(() => undefined);
    let renewed = Promise.resolve();
    const stopRenewing = clock.every(times.renew, () => {
      renewed = renewFor(times.claim);
    });
    try {
      await saveClaimed(sessionId);
    } finally {
      stopRenewing();
      await renewed;
      await renewFor(0);
    }
  }

  async function saveClaimed(sessionId: string): Promise<void> {
    const use = await findPlacedUse(db, sessionId);
    if (!use) return;
    try {
      await commit(use, await upload(use));
    } catch (error) {
      if (error instanceof InvalidStore) return fail(sessionId, error.message);
      const failure = statusToFailure(error);
      if (failure.slug === "not-found") return fail(sessionId, failure.detail ?? "the worker has no profile to save");
      // The worker's heartbeats announce the save again.
      log.warn({ err: error, session_id: sessionId, profile_id: use.profile_id }, "failed to save profile; will retry");
    }
  }

  function next(): void {
    metrics.savesWaiting.set(waiting.size);
    const [sessionId] = waiting;
    if (sessionId === undefined || running.size >= maxConcurrentSaves || stopping.signal.aborted) return;
    waiting.delete(sessionId);
    const saving = saveOne(sessionId)
      .catch((error: unknown) => log.warn({ err: error, session_id: sessionId }, "failed to save profile; will retry"))
      .finally(() => {
        running.delete(sessionId);
        next();
      });
    running.set(sessionId, saving);
    next();
  }

  function enqueue(sessionId: string): void {
    if (running.has(sessionId)) return;
    waiting.add(sessionId);
    next();
  }

  async function failOverdue(): Promise<void> {
    for (const sessionId of await findOverdue(db, 100)) await fail(sessionId, "the worker did not reconnect in time");
  }

  async function deleteInterrupted(): Promise<void> {
    const orphans = await deleteOrphans(db, times.orphan);
    if (orphans > 0) log.info({ stores: orphans }, "deleted stores of interrupted saves");
  }

  return {
    dueTasks: [
      { isDue: () => usesAreOverdue, run: failOverdue, failureMessage: "failed to end overdue profile saves" },
    ],
    jobs: [
      { run: deleteInterrupted, every: times.orphan, failureMessage: "failed to delete interrupted profile saves" },
    ],
    start() {
      unsubscribe = bus.subscribe("profile-offered", enqueue);
    },
    async stop() {
      unsubscribe();
      stopping.abort();
      await Promise.all(running.values());
    },
  };
}
