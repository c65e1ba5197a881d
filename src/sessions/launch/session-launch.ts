import { create } from "@bufbuild/protobuf";
import { toLogLevel } from "../../accounts/settings.ts";
import type { Channels } from "../../fleet/channels.ts";
import { type Session, SessionLiveEventSchema } from "../../gen/pilothouse/v1/session_pb.ts";
import { asFailure, type Failure } from "../../platform/errors.ts";
import { fleetCommands, toCommand } from "../../platform/grpc/fleet-commands.ts";
import { callUnary } from "../../platform/grpc/grpc-codec.ts";
import { statusToFailure } from "../../platform/grpc/grpc-failure.ts";
import type { Database } from "../../platform/postgres/database.ts";
import type { Profiles } from "../../profiles/profiles.ts";
import type { Tally } from "../../status/tally.ts";
import { commandContext, isConnectionLost } from "../commands/worker-commands.ts";
import { endSession, type SessionEndParts } from "../session-end.ts";
import { toSessionMessage } from "../session-message.ts";
import { livePatch, provisionWithin, transition } from "../store.ts";
import { noCapacity, workerLost } from "./launch-failure.ts";
import { createProxyCheck } from "./proxy-validation.ts";
import {
  createSessionPlacement,
  type LaunchOrder,
  type PlacedLaunch,
  type SessionPlacementParts,
} from "./session-placement.ts";

/** Milliseconds. */
const times = {
  /** Whole attempt: connection, profile store and launch. Two attempts fit into the provisioning time of a row. */
  attempt: (provisionWithin - 6_000) / 2,
  /** Maximum for the launch on the worker. */
  launch: 30_000,
  /** Margin for the worker's response. */
  margin: 2_000,
  /** For the connection to the worker, which is reopened within a second after a restart of the worker. */
  connect: 2_000,
};

export interface SessionLaunchParts extends SessionEndParts, SessionPlacementParts {
  readonly profiles: Profiles;
  readonly db: Database;
  readonly channels: Channels;
  /** Outcomes of launches, for the status page. */
  readonly launches: Tally;
  /** Private addresses (`host:port`) that pages may reach. */
  readonly egressAllow: readonly string[];
  /** `host:port` that proxies are asked to connect to. */
  readonly proxyCheck: string;
}

/** Creates the function that launches sessions and resolves when they are live. */
export function createSessionLaunch(parts: SessionLaunchParts): (order: LaunchOrder) => Promise<Session> {
  const { events, bus, channels, launches, sessionMetrics, profiles, log } = parts;
  const checkProxy = createProxyCheck(parts);
  const placement = createSessionPlacement(parts);

  async function runCreate({ caller, plan, connection }: LaunchOrder, placed: PlacedLaunch): Promise<void> {
    const { row, worker, profileVersion } = placed;
    const attemptEnds = performance.now() + times.attempt;
    const link = channels.to(worker);
    const epochs = { placementEpoch: BigInt(row.placement_epoch), controlEpoch: BigInt(row.control_epoch) };
    // Waits for the connection, which is reopened within a second after a restart of the worker.
    await channels.waitForConnection(link, times.connect);
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
  function giveUp({ caller }: LaunchOrder, { row }: PlacedLaunch, failure: Failure): Promise<Session> {
    const cause = { reason: "failed_to_start", detail: failure.detail ?? failure.slug } as const;
    return caller.commit<Session>(async (tx) => {
      const ended = await endSession(parts, tx, row.id, cause);
      return ended ? failure : ((await placement.findEnd(row)) ?? failure);
    });
  }

  function goLive({ caller }: LaunchOrder, { row }: PlacedLaunch): Promise<Session> {
    const placementEpoch = BigInt(row.placement_epoch);
    return caller.commit(async (tx) => {
      const live = await transition(tx, row.id, "launched", livePatch(), { placementEpoch });
      if (!live) return (await placement.findEnd(row)) ?? workerLost();
      const data = create(SessionLiveEventSchema, { sessionId: row.id });
      await events.append(tx, { accountId: row.account_id, subject: row.id }, SessionLiveEventSchema, data);
      tx.afterCommit(() => bus.publish("session-changed", row.id));
      return toSessionMessage(live);
    });
  }

  /**
   * Launches once. If the worker rather than the session caused the failure, returns the failure as `elsewhere`, so
   * that another worker is tried.
   */
  async function launchOn(
    order: LaunchOrder,
    placed: PlacedLaunch,
  ): Promise<Session | { readonly elsewhere: Failure }> {
    try {
      await runCreate(order, placed);
    } catch (error) {
      if (isConnectionLost(error)) {
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
    const first =
      (order.caller.resumes && (await placement.resumeLaunch(order, id))) || (await placement.placeNew(order, id));
    order.caller.charge?.();
    let outcome = await launchOn(order, first);
    if ("elsewhere" in outcome) {
      const second = await placement.placeElsewhere(order, first);
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
      if (!signal.aborted && serviceFaults.has(asFailure(thrown).slug)) launches.note(true, principal.accountId);
      throw thrown;
    }
  };
}

/** Failures that count as failed launches on the status page, because requests do not cause them. */
const serviceFaults: ReadonlySet<string> = new Set([
  "internal",
  "capacity-unavailable",
  "driver-error",
  "session-timeout",
]);
