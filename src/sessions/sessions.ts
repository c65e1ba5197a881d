import { findEntitlement } from "../accounts/store.ts";
import type { Channels } from "../fleet/channels.ts";
import type { CreateSessionRequest, Session } from "../gen/pilothouse/v1/session_pb.ts";
import type { Limits } from "../limits/limits.ts";
import type { Tier } from "../limits/tiers.ts";
import { fleetCommands, toCommand } from "../platform/grpc/fleet-commands.ts";
import { callUnary } from "../platform/grpc/grpc-codec.ts";
import { idPattern } from "../platform/ids.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import { createFileCommands, type FileCommands } from "./commands/file-commands.ts";
import type { SessionCaller, SessionCreator } from "./commands/session-caller.ts";
import { createSessionCommands, type SessionCommands } from "./commands/session-commands.ts";
import type { SessionRoute, SessionRoutes } from "./commands/session-routes.ts";
import { commandContext, createWorkerCommands } from "./commands/worker-commands.ts";
import { noSession, sessionGone } from "./ended-session.ts";
import { createFetch, type FetchPage, type FetchParts } from "./fetch/fetch.ts";
import { createSessionLaunch, type SessionLaunchParts } from "./launch/session-launch.ts";
import type { ConnectionPlan } from "./launch/session-placement.ts";
import { planSession } from "./launch/session-plan.ts";
import { createSlotQueue } from "./launch/slot-queue.ts";
import { createLogCommands, type LogCommands } from "./logs/log-commands.ts";
import { type EndCause, endSession } from "./session-end.ts";
import { createSessionEvents, type SessionEvents } from "./session-events.ts";
import { isEnded } from "./session-states.ts";
import { createSessionUpdate, type UpdateSession } from "./session-update.ts";
import { findNamed, findSession, provisionWithin, type SessionRow } from "./store.ts";

export interface SessionsParts extends Omit<SessionLaunchParts & FetchParts, "slotQueue"> {
  readonly db: Database;
  readonly channels: Channels;
  readonly routes: SessionRoutes;
  readonly limits: Limits;
}

/** Sessions of all accounts, as used by SessionService and other features. */
export interface Sessions extends SessionCommands {
  /** Launches a session, and resolves when it is live. */
  launch(caller: SessionCreator, request: CreateSessionRequest, connection?: ConnectionPlan): Promise<Session>;
  /**
   * Returns the identifier of the live or paused session that a connecting client named; undefined if there is none.
   * Waits while the session is being launched.
   */
  findNamed(caller: SessionCaller, name: string): Promise<string | undefined>;
  /**
   * Returns a session. Throws `not-found`. Throws `session-destroyed` for an ended session, unless `includeEnded` is
   * true.
   */
  find(caller: SessionCaller, id: string, includeEnded?: boolean): Promise<SessionRow>;
  /** Throws like `find`, but reads a cache of routes, which is usually at most 5 s old. */
  assertRunning(caller: SessionCaller, id: string): Promise<void>;
  /** Returns the agent session that drives a session; null if there is none. Reads the cache of `assertRunning`. */
  agentOf(caller: SessionCaller, id: string): Promise<string | null>;
  readonly fetch: FetchPage;
  readonly files: FileCommands;
  readonly logs: LogCommands;
  /** Follows the events of a session until the session ends. */
  readonly follow: SessionEvents;
  readonly update: UpdateSession;
  /** Ends sessions of accounts that have no minutes left or are disabled. */
  readonly quotaTask: DueTask;
  /** Ends a session and its browser. Throws `not-found`, or `session-destroyed` if the session had already ended. */
  end(caller: SessionCaller, id: string, cause: Pick<EndCause, "reason" | "detail">): Promise<void>;
}

/**
 * Milliseconds to wait for the worker after an end is committed. If the command is lost, the worker ends the browser at
 * its next heartbeat.
 */
const endTimeout = 2_000;

const sessionId = idPattern("ses");

export function createSessions(parts: SessionsParts): Sessions {
  const { db, channels, routes, limits, log } = parts;
  const slotQueue = createSlotQueue(parts);
  const launch = createSessionLaunch({ ...parts, slotQueue });
  const workerCommands = createWorkerCommands(routes, channels);

  /** Returns the limits of the caller's account. Reads them again if the cached limits would reject the request. */
  async function limitsFor({ principal }: SessionCaller, { timeoutSeconds = 0 }: CreateSessionRequest): Promise<Tier> {
    const known = limits.of(principal);
    if (timeoutSeconds <= known.longestSessionSeconds) return known;
    return limits.of(await findEntitlement(db, principal.accountId));
  }

  /**
   * Sends the worker the command to end the browser. If the command fails, the worker ends the browser at its next
   * heartbeat.
   */
  async function notifyWorker(caller: SessionCaller, route: SessionRoute): Promise<void> {
    const link = channels.to(route.worker);
    const context = commandContext(caller, route.row.id, route, endTimeout);
    const { destroy } = fleetCommands;
    const options = { metadata: link.metadata, timeoutMs: endTimeout };
    await callUnary(link.client, destroy.method, toCommand(destroy, context, {}), options).catch((error: unknown) => {
      log.debug({ err: error, session_id: route.row.id }, "failed to notify the worker of the end of a session");
    });
  }

  return {
    ...createSessionCommands(workerCommands, parts),
    fetch: createFetch({ ...parts, slotQueue }),
    files: createFileCommands(workerCommands),
    logs: createLogCommands(workerCommands),
    follow: createSessionEvents({ events: parts.events, routes, commands: workerCommands }),
    update: createSessionUpdate(parts, workerCommands),
    quotaTask: parts.quota.task,
    async launch(caller, request, connection) {
      const plan = planSession(request, await limitsFor(caller, request));
      return launch({ caller, plan, connection });
    },
    async findNamed({ principal: { accountId } }, name) {
      const id = await findNamed(db, accountId, name);
      if (id === undefined) return undefined;
      let isRunning = false;
      await routes.awaitStatus({ id, accountId, milliseconds: provisionWithin }, (status) => {
        isRunning = !isEnded(status);
        return status !== "provisioning";
      });
      return isRunning ? id : undefined;
    },
    async find({ principal }, id, includeEnded = false) {
      const row = sessionId.test(id) ? await findSession(db, id, principal.accountId) : undefined;
      if (!row) throw noSession();
      if (isEnded(row.status) && !includeEnded) throw sessionGone(row);
      return row;
    },
    async assertRunning({ principal }, id) {
      await routes.findRunning(id, principal.accountId);
    },
    async agentOf({ principal }, id) {
      const { row } = await routes.findRunning(id, principal.accountId);
      return row.agent_session_id;
    },
    async end(caller, id, cause) {
      const { accountId } = caller.principal;
      const route = await routes.findRunning(id, accountId);
      const ended = await db.transaction(async (tx) => {
        const row = await endSession(parts, tx, id, { ...cause, accountId });
        if (row) caller.audit?.(tx, { subject: id });
        return row;
      });
      if (!ended) {
        routes.forget(id);
        await routes.findRunning(id, accountId);
        throw noSession();
      }
      await notifyWorker(caller, { ...route, placementEpoch: BigInt(ended.placement_epoch) });
    },
  };
}
