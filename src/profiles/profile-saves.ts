import { create } from "@bufbuild/protobuf";
import { lockAccount } from "../accounts/store.ts";
import type { EventLog } from "../events/event-log.ts";
import type { Channels } from "../fleet/channels.ts";
import { TakeProfileCommandSchema, WorkerService } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Limits } from "../limits/limits.ts";
import { monthAt } from "../limits/month.ts";
import { tellThresholds } from "../limits/quota-events.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import { counted } from "../platform/counted.ts";
import { callServerStreaming } from "../platform/grpc/grpc-codec.ts";
import { statusToFailure } from "../platform/grpc/grpc-failure.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import type { Sealer } from "../platform/secrets/secrets-sealer.ts";
import { deleteOrphans, deleteStore } from "./chunk-store.ts";
import type { ProfileMetrics } from "./profile-metrics.ts";
import { UnfitStore, type UploadedStore, uploadStore } from "./profile-upload.ts";
import type { ProfileUses } from "./profile-uses.ts";
import { lockProfile, sumStorage, switchStore } from "./store.ts";
import { claimSave, findOverdue, findPlacedUse, holdSave, type ProfileUse, settleUse } from "./use-store.ts";

/** Milliseconds. */
const times = {
  /** For a store on its way from a worker, the packing of up to 10 s included. */
  take: 45_000,
  /** Until another gateway may take a save whose gateway has not renewed its claim. */
  claim: 8_000,
  /** Between two renewals. */
  renew: 2_000,
  /** Between two looks for saves that come no more. */
  overdue: 5_000,
  /** No upload takes this long: a store of that age to which no profile points is of one that was interrupted. */
  orphan: 300_000,
};

/** Saves that are taken at once: each holds half a MiB. */
const lanes = 8;

/** Takes the saves of ended sessions that are offered on the bus, each in one gateway. */
export interface ProfileSaves extends Required<Part> {
  readonly jobs: readonly RepeatedWork[];
}

export interface ProfileSavesParts {
  readonly db: Database;
  readonly events: EventLog;
  readonly clock: Clock;
  readonly bus: Bus;
  readonly log: Log;
  readonly metrics: ProfileMetrics;
  readonly limits: Limits;
  readonly mailer: Mailer;
  readonly sealer: Sealer;
  readonly uses: ProfileUses;
  readonly channels: Channels;
}

type PlacedUse = NonNullable<Awaited<ReturnType<typeof findPlacedUse>>>;

/** Makes what takes saves. */
export function createProfileSaves(parts: ProfileSavesParts): ProfileSaves {
  const { db, clock, bus, log, metrics, limits, uses } = parts;
  const running = new Map<string, Promise<void>>();
  const waiting = new Set<string>();
  const stopping = new AbortController();
  let unsubscribe = (): void => undefined;

  const fail = (sessionId: string, detail: string): Promise<void> =>
    db.transaction((tx) => uses.fail(tx, sessionId, detail));

  /** Says why an uploaded store cannot become the profile's next version; undefined when it can. */
  async function findObstacle(tx: Tx, use: ProfileUse, { sizeBytes }: UploadedStore): Promise<string | undefined> {
    const account = await lockAccount(tx, use.account_id);
    const profile = await lockProfile(tx, use.profile_id, use.account_id);
    if (profile?.version !== use.version) return "the profile was changed meanwhile";
    const tier = limits.of(account);
    const others = await sumStorage(tx, use.account_id, use.profile_id);
    const total = others + sizeBytes;
    // Also of a save that is refused: it is by this that the account hears why.
    await tellThresholds(parts, tx, {
      ...{ accountId: use.account_id, tier: tier.name, quota: "profile_storage_bytes", isMonthly: false },
      ...{ used: total, before: others + Number(profile.size_bytes), limit: tier.profileStorageBytes },
      month: monthAt(clock.now()),
    });
    if (tier.profileStorageIsSoft || total <= tier.profileStorageBytes) return undefined;
    return `with it the account's profiles would take ${counted(total, "byte")} of the ${tier.profileStorageBytes} that it may have`;
  }

  /** Makes a store the profile's next version, if the use has not been settled meanwhile. */
  async function commit(use: ProfileUse, { id, sizeBytes, engine }: UploadedStore): Promise<void> {
    await db.transaction(async (tx) => {
      const obstacle = await findObstacle(tx, use, { id, sizeBytes, engine });
      if (obstacle !== undefined) return uses.fail(tx, use.session_id, obstacle);
      if (!(await settleUse(tx, use.session_id))) return;
      await switchStore(tx, { id: use.profile_id, storeId: id, sizeBytes, engine });
      tx.afterCommit(() => {
        metrics.saves.inc({ outcome: "saved" });
        // Whoever waits for the profile waits for a place to run as well.
        bus.publish("capacity", "");
      });
    });
    await deleteStore(db, id);
  }

  async function upload(use: PlacedUse): Promise<UploadedStore> {
    const { session_id: sessionId, worker_id: id, address, secret_hash: secretHash } = use;
    const link = parts.channels.to({ id, address, secretHash });
    const command = create(TakeProfileCommandSchema, {
      context: { sessionId, placementEpoch: BigInt(use.placement_epoch), timeoutMs: times.take },
      profileId: use.profile_id,
    });
    const options = { metadata: link.metadata, timeoutMs: times.take, signal: stopping.signal };
    return uploadStore(
      parts,
      callServerStreaming(link.client, WorkerService.method.takeProfile, command, options),
      use,
    );
  }

  async function takeOne(sessionId: string): Promise<void> {
    if (!(await claimSave(db, sessionId, times.claim))) return;
    const hold = (ms: number): Promise<void> => holdSave(db, sessionId, ms).catch(() => undefined);
    let renewed = Promise.resolve();
    const stopRenewing = clock.every(times.renew, () => {
      renewed = hold(times.claim);
    });
    try {
      await saveClaimed(sessionId);
    } finally {
      stopRenewing();
      await renewed;
      await hold(0);
    }
  }

  async function saveClaimed(sessionId: string): Promise<void> {
    const use = await findPlacedUse(db, sessionId);
    if (!use) return;
    try {
      await commit(use, await upload(use));
    } catch (error) {
      if (error instanceof UnfitStore) return fail(sessionId, error.message);
      const failure = statusToFailure(error);
      if (failure.slug === "not-found") return fail(sessionId, failure.detail ?? "the worker has nothing to save");
      // What waits on the worker is offered again by its heartbeats.
      log.warn({ err: error, session_id: sessionId, profile_id: use.profile_id }, "a profile could not be saved yet");
    }
  }

  function next(): void {
    metrics.savesWaiting.set(waiting.size);
    const [sessionId] = waiting;
    if (sessionId === undefined || running.size >= lanes || stopping.signal.aborted) return;
    waiting.delete(sessionId);
    const taking = takeOne(sessionId)
      .catch((error: unknown) => log.warn({ err: error, session_id: sessionId }, "a profile could not be saved yet"))
      .finally(() => {
        running.delete(sessionId);
        next();
      });
    running.set(sessionId, taking);
    next();
  }

  function take(sessionId: string): void {
    if (running.has(sessionId)) return;
    waiting.add(sessionId);
    next();
  }

  async function failOverdue(): Promise<void> {
    for (const sessionId of await findOverdue(db, 100)) await fail(sessionId, "its worker did not come back in time");
  }

  async function deleteInterrupted(): Promise<void> {
    const orphans = await deleteOrphans(db, times.orphan);
    if (orphans > 0) log.info({ stores: orphans }, "stores of interrupted saves were deleted");
  }

  return {
    jobs: [
      { run: failOverdue, every: times.overdue, complaint: "overdue profile saves cannot be ended at the moment" },
      { run: deleteInterrupted, every: times.orphan, complaint: "interrupted profile saves cannot be deleted now" },
    ],
    start() {
      unsubscribe = bus.subscribe("profile-offered", take);
    },
    async stop() {
      unsubscribe();
      stopping.abort();
      await Promise.all(running.values());
    },
  };
}
