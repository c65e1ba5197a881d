import { create } from "@bufbuild/protobuf";
import { toLogLevel, toStoredLogLevel } from "../../accounts/settings.ts";
import { lockAccount } from "../../accounts/store.ts";
import { joinCapacityWaits, leaveCapacityWaits } from "../../fleet/capacity-waits.ts";
import type { Channels } from "../../fleet/channels.ts";
import { place } from "../../fleet/placement.ts";
import { findWorker, type WorkerAddress } from "../../fleet/store.ts";
import { type Session, SessionCreatedEventSchema, SessionLiveEventSchema } from "../../gen/pilothouse/v1/session_pb.ts";
import type { Limits } from "../../limits/limits.ts";
import { nextMessage } from "../../platform/bus.ts";
import type { Clock } from "../../platform/clock.ts";
import { asFailure, type Failure, fail } from "../../platform/errors.ts";
import { fleetCommands, toCommand } from "../../platform/grpc/fleet-commands.ts";
import { callUnary } from "../../platform/grpc/grpc-codec.ts";
import { statusToFailure } from "../../platform/grpc/grpc-failure.ts";
import type { Log } from "../../platform/log.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { type ProfileReservation, profileInUse, reserveProfile } from "../../profiles/profile-reservation.ts";
import type { Profiles } from "../../profiles/profiles.ts";
import { findUsedVersion } from "../../profiles/use-store.ts";
import type { Tally } from "../../status/tally.ts";
import { makerIdOf, type SessionMaker } from "../commands/session-caller.ts";
import { brokeOnTheWay, commandContext } from "../commands/worker-commands.ts";
import { sessionGone } from "../ended-session.ts";
import { endSession, type SessionEndParts } from "../session-end.ts";
import { toSessionMessage } from "../session-message.ts";
import { toStoredOptions } from "../session-options.ts";
import type { SessionQuota } from "../session-quota.ts";
import { endings } from "../session-states.ts";
import {
  countRunning,
  findNamed,
  findSession,
  insertSession,
  livePatch,
  moveSession,
  provisionWithin,
  type SessionRow,
  transition,
} from "../store.ts";
import { noCapacity, notIntegrated, workerLost } from "./launch-failure.ts";
import { createProxyCheck } from "./proxy-validation.ts";
import type { SessionPlan } from "./session-plan.ts";
import { type AtLimit, atLimit, mayWait } from "./slot-limit.ts";
import type { SlotQueue } from "./slot-queue.ts";
import { countAhead, joinQueue, leaveQueue } from "./slot-wait-store.ts";

/** Milliseconds. */
const times = {
  /** Whole attempt: connection, profile store and launch. Two attempts fit into the provisioning time of a row. */
  attempt: (provisionWithin - 6_000) / 2,
  /** Maximum for the launch on the worker. */
  launch: 30_000,
  /** Margin for the worker's response. */
  margin: 2_000,
  /** For a connection: channels.ts retries a restarted worker within a second. */
  connect: 2_000,
  /** Between checks for a free slot, in case a notification was lost. */
  poll: 100,
};

export interface SessionLaunchParts extends SessionEndParts {
  readonly slotQueue: SlotQueue;
  readonly clock: Clock;
  readonly log: Log;
  readonly profiles: Profiles;
  readonly db: Database;
  readonly channels: Channels;
  readonly limits: Limits;
  /** Outcomes of launches, for the status page. */
  readonly launches: Tally;
  readonly quota: SessionQuota;
  /** Milliseconds that a session create waits for a slot. */
  readonly queueMs: number;
  /** Private addresses (`host:port`) that pages may reach. */
  readonly egressAllow: readonly string[];
  /** `host:port` that proxies are asked to connect to. */
  readonly proxyCheck: string;
}

export interface LaunchOrder {
  readonly caller: SessionMaker;
  readonly plan: SessionPlan;
  /** Set if a connecting client creates the session. */
  readonly connection?: ConnectionPlan | undefined;
}

/** How a session depends on the clients that connect to create it. */
export interface ConnectionPlan {
  readonly name: string | undefined;
  readonly endsWithClients: boolean;
}

/** A session that has a slot. */
interface Placed {
  readonly row: SessionRow;
  readonly worker: WorkerAddress;
  /** Profile version to restore; 0 without a profile. */
  readonly profileVersion: bigint;
  /** Milliseconds of `performance.now()`. */
  readonly placedAt: number;
  /** Milliseconds that the create waited at the account's limit. */
  readonly waitedMs?: number;
}

type PlaceAttempt = Placed | AtLimit | "full" | "raced" | Extract<ProfileReservation, { kind: "saving" }>;

/** Creates the function that launches sessions and resolves when they are live. */
export function createSessionLaunch(parts: SessionLaunchParts): (order: LaunchOrder) => Promise<Session> {
  const { db, events, bus, clock, channels, limits, quota, launches, sessionMetrics, profiles, slotQueue, log } = parts;
  const checkProxy = createProxyCheck(parts);

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
  function tryPlace({ caller, plan, connection }: LaunchOrder, id: string, isQueued: boolean): Promise<PlaceAttempt> {
    const { accountId } = caller.principal;
    return db.transaction(async (tx) => {
      // The statements are sent at once. PostgreSQL counts after it has locked the account.
      const [account, running, ahead] = await Promise.all([
        lockAccount(tx, accountId),
        countRunning(tx, accountId),
        countAhead(tx, { accountId, id }),
      ]);
      const connectName = connection?.name;
      if (connectName !== undefined && (await findNamed(tx, accountId, connectName)))
        throw fail("conflict", {}, { detail: "another client creates the session of this name: connect again" });
      const tier = limits.of(account);
      const limit = tier.concurrentSessions;
      if (running + ahead >= limit) {
        const refusal = atLimit({ running, ahead, limit, tier: tier.name });
        if (!mayWait({ waitMs: plan.request.waitForSlotMs, isQueued, ahead })) throw refusal;
        joinQueue(tx, { accountId, id });
        return { kind: "at-limit", limit, refusal };
      }
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
      if (placement.kind !== "placed") return placement.kind;
      const { viewport, timeoutSeconds } = plan;
      const logs = toStoredLogLevel(plan.request.logs) ?? account.session_logs;
      const chosen = { id, accountId, tier: tier.name, profileId, locale, timezone, labels, viewport, timeoutSeconds };
      const kept = { ...chosen, options, connectName, logs, workerId: placement.worker.id };
      const row = await insertSession(tx, { ...plan.browser, ...kept, madeBy: makerIdOf(caller.principal) });
      if (isQueued) await leaveQueue(tx, id);
      const profileVersion = profile?.version ?? 0n;
      if (profileId !== undefined) {
        const use = { session_id: id, profile_id: profileId, account_id: accountId, version: String(profileVersion) };
        await profiles.uses.begin(tx, use);
      }
      const data = create(SessionCreatedEventSchema, { sessionId: id });
      await events.append(tx, { accountId, subject: id }, SessionCreatedEventSchema, data);
      caller.audit?.(tx, { subject: id, data: auditedFields(row) });
      return { row, worker: placement.worker, profileVersion, placedAt: performance.now() };
    });
  }

  /** Places the session. Waits in order at the account's limit, and then for a slot of a worker. */
  async function waitForPlace(order: LaunchOrder, id: string): Promise<Placed> {
    const { signal, principal } = order.caller;
    const { accountId } = principal;
    const began = clock.monotonic();
    const until = began + (order.plan.request.waitForSlotMs ?? 0);
    let isQueued = false;
    let isCounted = false;
    let waitedMs = 0;
    let deadline: number | undefined;
    try {
      for (;;) {
        const attempt = await tryPlace(order, id, isQueued);
        if (typeof attempt === "object" && "row" in attempt) return { ...attempt, waitedMs };
        // The session does not exist yet, so it is not launched for a client that has left.
        const goneAway = () => noCapacity("the client went away while it waited for a slot");
        if (typeof attempt === "object" && attempt.kind === "at-limit") {
          isQueued = true;
          if (clock.monotonic() >= until) throw attempt.refusal;
          if (signal.aborted) throw goneAway();
          await slotQueue.wait({ accountId, id, limit: attempt.limit, until, signal });
          waitedMs = clock.monotonic() - began;
          continue;
        }
        isCounted ||= attempt === "full";
        deadline ??= clock.monotonic() + parts.queueMs;
        if (clock.monotonic() >= deadline) {
          throw typeof attempt === "object"
            ? profileInUse(attempt.sessionId)
            : noCapacity("no worker has a free slot: try again in a moment");
        }
        if (signal.aborted) throw goneAway();
        if (attempt !== "raced") await nextMessage(bus, "capacity", times.poll, signal);
      }
    } finally {
      if (isQueued) await slotQueue.leave({ accountId, id });
      if (isCounted) await leaveCapacityWaits(parts, id);
    }
  }

  /** Moves a session whose worker failed to another worker; undefined if there is no other worker. */
  async function placeElsewhere({ plan }: LaunchOrder, placed: Placed): Promise<Placed | undefined> {
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
    // A lost race means that a worker is full, so there are no more races than workers.
    let attempt = await tryOnce();
    while (attempt === "raced") attempt = await tryOnce();
    return attempt;
  }

  /** Resumes a launch whose gateway crashed; undefined if that gateway had not placed the session yet. */
  async function takeOver({ caller }: LaunchOrder, id: string): Promise<Placed | undefined> {
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

  async function runCreate({ caller, plan, connection }: LaunchOrder, placed: Placed): Promise<void> {
    const { row, worker, profileVersion } = placed;
    const attemptEnds = performance.now() + times.attempt;
    const link = channels.to(worker);
    const epochs = { placementEpoch: BigInt(row.placement_epoch), controlEpoch: BigInt(row.control_epoch) };
    // Waits for the connection, which is reopened within a second after a restart of the worker.
    await channels.isBack(link, times.connect);
    if (row.profile_id !== null) {
      const { profile_id: profileId, account_id: accountId } = row;
      const context = commandContext(caller, row.id, epochs, times.launch);
      await profiles.restore({ link, context, accountId, profileId, version: profileVersion });
    }
    const now = performance.now();
    const timeoutMs = Math.ceil(Math.min(times.launch, attemptEnds - now - times.margin));
    const command = toCommand(fleetCommands.create, commandContext(caller, row.id, epochs, timeoutMs), {
      profileVersion,
      plan: plan.browser,
      lifetimeMs: Math.max(1, Math.round(plan.timeoutSeconds * 1_000 - (now - placed.placedAt))),
      egressAllow: [...parts.egressAllow],
      proxyCheck: parts.proxyCheck,
      allowedDomains: plan.request.allowedDomains,
      endsWithClients: connection?.endsWithClients ?? false,
      logs: toLogLevel(row.logs ?? "off"),
    });
    const options = { metadata: link.metadata, timeoutMs: timeoutMs + times.margin };
    await callUnary(link.client, fleetCommands.create.method, command, options);
  }

  /**
   * Ends a session that could not be launched, and throws the failure. If its client ended the session meanwhile,
   * throws `session-destroyed` instead.
   */
  function giveUp({ caller }: LaunchOrder, { row }: Placed, failure: Failure): Promise<Session> {
    const cause = { reason: "failed_to_start", detail: failure.detail ?? failure.slug } as const;
    return caller.commit<Session>(async (tx) => {
      const ended = await endSession(parts, tx, row.id, cause);
      return ended ? failure : ((await findEnd(row)) ?? failure);
    });
  }

  /** The failure for a session that its client ended; undefined if a fault ended the session. */
  async function findEnd(row: SessionRow): Promise<Failure | undefined> {
    const now = await findSession(db, row.id, row.account_id);
    return now?.ended_reason && endings[now.ended_reason] === "completed" ? sessionGone(now) : undefined;
  }

  function goLive({ caller }: LaunchOrder, { row }: Placed): Promise<Session> {
    const placementEpoch = BigInt(row.placement_epoch);
    return caller.commit(async (tx) => {
      const live = await transition(tx, row.id, "launched", livePatch(), { placementEpoch });
      if (!live) return (await findEnd(row)) ?? workerLost();
      const data = create(SessionLiveEventSchema, { sessionId: row.id });
      await events.append(tx, { accountId: row.account_id, subject: row.id }, SessionLiveEventSchema, data);
      tx.afterCommit(() => bus.publish("session-changed", row.id));
      return toSessionMessage(live);
    });
  }

  /** Launches once. Returns "elsewhere" if the failure is due to the worker rather than the session. */
  async function launchOn(order: LaunchOrder, placed: Placed): Promise<Session | { readonly elsewhere: Failure }> {
    try {
      await runCreate(order, placed);
    } catch (error) {
      if (brokeOnTheWay(error)) {
        sessionMetrics.workersUnreachable.inc();
        const { id: workerId, address } = placed.worker;
        log.warn({ err: error, worker_id: workerId, address, session_id: placed.row.id }, "failed to reach a worker");
        return { elsewhere: workerLost(error) };
      }
      const failure = statusToFailure(error);
      if (failure.slug === "capacity-unavailable") return { elsewhere: noCapacity(failure.detail ?? failure.message) };
      if (failure.extensions.launch_failed === true && placed.row.profile_id === null) return { elsewhere: failure };
      return giveUp(order, placed, failure);
    }
    return goLive(order, placed);
  }

  async function launchAll(order: LaunchOrder): Promise<Session> {
    const began = performance.now();
    const { runtime, proxy } = order.plan.browser;
    if (proxy) await checkProxy({ proxy, runtime, traceparent: order.caller.traceparent });
    const id = order.caller.ids.next("ses");
    const first = (order.caller.resumes && (await takeOver(order, id))) || (await waitForPlace(order, id));
    order.caller.charge?.();
    let outcome = await launchOn(order, first);
    if ("elsewhere" in outcome) {
      const second = await placeElsewhere(order, first);
      const { elsewhere: failure } = outcome;
      if (!second) return giveUp(order, first, failure);
      outcome = await launchOn(order, second);
      // A browser that failed to start is a better reason than a worker that was lost or full.
      if ("elsewhere" in outcome)
        return giveUp(order, second, failure.slug === "driver-error" ? failure : outcome.elsewhere);
    }
    sessionMetrics.launch.observe((performance.now() - began - (first.waitedMs ?? 0)) / 1_000);
    return outcome;
  }

  return async (order) => {
    const { principal, signal } = order.caller;
    try {
      const session = await launchAll(order);
      launches.note(false);
      return session;
    } catch (thrown) {
      if (!signal.aborted && ourFaults.has(asFailure(thrown).slug)) launches.note(true, principal.accountId);
      throw thrown;
    }
  };
}

/** Failures that no client can cause by its request. */
const ourFaults: ReadonlySet<string> = new Set(["internal", "capacity-unavailable", "driver-error", "session-timeout"]);
