import { create } from "@bufbuild/protobuf";
import { toStoredLogLevel } from "../../accounts/settings.ts";
import { joinCapacityWaits } from "../../fleet/capacity-waits.ts";
import { place } from "../../fleet/placement.ts";
import { findWorker, type WorkerAddress } from "../../fleet/store.ts";
import { SessionCreatedEventSchema } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Limits } from "../../limits/limits.ts";
import { type Failure, fail } from "../../platform/errors.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { reserveProfile } from "../../profiles/profile-reservation.ts";
import type { Profiles } from "../../profiles/profiles.ts";
import { findUsedVersion } from "../../profiles/use-store.ts";
import { creatorIdOf, type SessionCreator } from "../commands/session-caller.ts";
import { sessionGone } from "../ended-session.ts";
import type { SessionEndParts } from "../session-end.ts";
import { toStoredOptions } from "../session-options.ts";
import type { SessionQuota } from "../session-quota.ts";
import { endings } from "../session-states.ts";
import { findNamed, findSession, insertSession, moveSession, type SessionRow } from "../store.ts";
import { noCapacity, notIntegrated, workerLost } from "./launch-failure.ts";
import { type PlaceAttempt, type PlaceWaitParts, waitForPlace } from "./place-wait.ts";
import type { SessionPlan } from "./session-plan.ts";
import { lockAndCount, queueAtLimit } from "./slot-limit.ts";
import { leaveQueue } from "./slot-wait-store.ts";

export interface SessionPlacementParts extends Pick<SessionEndParts, "events">, PlaceWaitParts {
  readonly profiles: Pick<Profiles, "uses">;
  readonly db: Database;
  readonly limits: Limits;
  readonly quota: SessionQuota;
}

export interface LaunchOrder {
  readonly caller: SessionCreator;
  readonly plan: SessionPlan;
  /** Set if a connecting client creates the session. */
  readonly connection?: ConnectionPlan | undefined;
}

/** Properties of a session that a connecting client creates. */
export interface ConnectionPlan {
  readonly name: string | undefined;
  /** Whether the session ends when its last client has disconnected. */
  readonly endsWithClients: boolean;
}

/** A session that is placed on a worker. */
export interface PlacedLaunch {
  readonly row: SessionRow;
  readonly worker: WorkerAddress;
  /** Profile version to restore; 0 if there is none. */
  readonly profileVersion: bigint;
  /** Time of the placement, in milliseconds of `performance.now()`. */
  readonly placedAt: number;
  /** Milliseconds that the launch waited at the account's limit. */
  readonly waitedMs?: number;
}

/** Creates the functions that insert sessions and choose their workers. */
export function createSessionPlacement(parts: SessionPlacementParts) {
  const { db, events, limits, quota, profiles } = parts;

  /** Fields of a new session for the audit log. */
  const auditedFields = ({ runtime, archetype, profile_id: profileId, proxy_server: proxy }: SessionRow) => ({
    runtime,
    archetype,
    ...(profileId !== null && { profile_id: profileId }),
    ...(proxy !== null && { proxy_server: proxy }),
  });

  /**
   * Counts, places and inserts the session in one transaction, so that neither the tier's limit nor a worker's slots
   * are exceeded.
   */
  function tryPlace(
    { caller, plan, connection }: LaunchOrder,
    id: string,
    isQueued: boolean,
  ): Promise<PlaceAttempt<PlacedLaunch>> {
    const { accountId } = caller.principal;
    return db.transaction(async (tx) => {
      const { account, ...counts } = await lockAndCount(tx, { accountId, id });
      const connectName = connection?.name;
      if (connectName !== undefined && (await findNamed(tx, accountId, connectName)))
        throw fail("conflict", {}, { detail: "another client is creating the session with this name: connect again" });
      const tier = limits.of(account);
      const waiting = { accountId, id, waitMs: plan.request.waitForSlotMs, isQueued };
      const refused = queueAtLimit(tx, tier, counts, waiting);
      if (refused) return refused;
      await quota.admit(tx, accountId, account);
      const { profileId, locale, timezone, labels } = plan.request;
      const options = toStoredOptions(plan.request);
      const { runtime } = plan.browser;
      const request = { accountId, tier, runtime };
      const profile = profileId === undefined ? undefined : await reserveProfile(tx, { profileId, ...request });
      if (profile?.kind === "saving") return profile;
      const placement = await place(tx, { runtime });
      if (placement.kind === "not-integrated") throw notIntegrated(runtime);
      if (placement.kind === "full") joinCapacityWaits(tx, { id, runtime });
      if (placement.kind !== "placed") return placement;
      const { viewport, timeoutSeconds } = plan;
      const logs = toStoredLogLevel(plan.request.logs) ?? account.session_logs;
      const chosen = { id, accountId, tier: tier.name, profileId, locale, timezone, labels, viewport, timeoutSeconds };
      const kept = { ...chosen, options, connectName, logs, workerId: placement.worker.id };
      const row = await insertSession(tx, { ...plan.browser, ...kept, createdBy: creatorIdOf(caller.principal) });
      if (isQueued) await leaveQueue(tx, id);
      const profileVersion = profile?.version ?? 0n;
      if (profileId !== undefined) {
        const use = { session_id: id, profile_id: profileId, account_id: accountId, version: String(profileVersion) };
        await profiles.uses.begin(tx, use);
      }
      const data = create(SessionCreatedEventSchema, { sessionId: id });
      await events.append(tx, { accountId, subject: id }, SessionCreatedEventSchema, data);
      caller.audit?.(tx, { subject: id, data: auditedFields(row) });
      const placed = { row, worker: placement.worker, profileVersion, placedAt: performance.now() };
      return { kind: "placed", placed };
    });
  }

  /** Places the session. Waits in order at the account's limit, and then for a slot of a worker. */
  async function placeNew(order: LaunchOrder, id: string): Promise<PlacedLaunch> {
    const { signal, principal } = order.caller;
    const { placed, waitedMs } = await waitForPlace(parts, {
      accountId: principal.accountId,
      id,
      waitMs: order.plan.request.waitForSlotMs,
      signal,
      tryPlace: (isQueued) => tryPlace(order, id, isQueued),
      abandonError: () => noCapacity("the client disconnected while it waited for a slot"),
    });
    return { ...placed, waitedMs };
  }

  /**
   * Moves a session from a failed worker to another worker. Returns undefined if no other worker has a free slot, or if
   * the session is no longer being launched.
   */
  async function placeElsewhere({ plan }: LaunchOrder, placed: PlacedLaunch): Promise<PlacedLaunch | undefined> {
    const { row, worker } = placed;
    const tryOnce = () =>
      db.transaction(async (tx) => {
        const placement = await place(tx, { runtime: plan.browser.runtime, except: worker.id });
        if (placement.kind === "raced") return placement.kind;
        if (placement.kind !== "placed") return undefined;
        const placementEpoch = BigInt(row.placement_epoch);
        const moved = await moveSession(tx, { id: row.id, placementEpoch }, placement.worker.id);
        return moved && { ...placed, row: moved, worker: placement.worker };
      });
    // A lost race means that another placement has filled a worker, so there are at most as many races as workers.
    let attempt = await tryOnce();
    while (attempt === "raced") attempt = await tryOnce();
    return attempt;
  }

  /** Resumes a launch after the crash of its gateway; undefined if that gateway had not placed the session yet. */
  async function resumeLaunch({ caller }: LaunchOrder, id: string): Promise<PlacedLaunch | undefined> {
    const row = await findSession(db, id, caller.principal.accountId);
    if (!row) return undefined;
    return db.transaction(async (tx) => {
      const moved = await moveSession(tx, { id, placementEpoch: BigInt(row.placement_epoch) }, row.worker_id);
      if (!moved) throw (await findEnd(row)) ?? workerLost();
      const worker = await findWorker(tx, row.worker_id);
      if (!worker) throw new Error(`the worker of the session ${id} does not exist`);
      const profileVersion = await findUsedVersion(tx, id);
      // `placedAt` is later than the actual placement, but the sweep still ends the session in time.
      return { row: moved, worker, profileVersion, placedAt: performance.now() };
    });
  }

  /** Returns the failure for a session that has ended, if its end counts as completed; undefined otherwise. */
  async function findEnd(row: SessionRow): Promise<Failure | undefined> {
    const now = await findSession(db, row.id, row.account_id);
    return now?.ended_reason && endings[now.ended_reason] === "completed" ? sessionGone(now) : undefined;
  }

  return { placeNew, placeElsewhere, resumeLaunch, findEnd };
}
