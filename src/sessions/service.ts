import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Call } from "../call.ts";
import type { Channels } from "../fleet/channels.ts";
import { DestroyCommandSchema, WorkerService } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  type ListSessionsRequest,
  ListSessionsResponseSchema,
  type SessionService,
} from "../gen/pilothouse/v1/session_pb.ts";
import type { Tiers } from "../limits/tiers.ts";
import type { Database } from "../platform/database.ts";
import { callUnary } from "../platform/grpc-codec.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { Log } from "../platform/log.ts";
import type { ServiceImplementation } from "../registry.ts";
import { collectCapture } from "./capture-file.ts";
import { createDrive } from "./drive.ts";
import { noSession, sessionGone } from "./ended-session.ts";
import { createSessionCommands } from "./session-commands.ts";
import { endSession } from "./session-end.ts";
import { createSessionEvents } from "./session-events.ts";
import { createSessionLaunch, type SessionLaunchParts } from "./session-launch.ts";
import { toSessionMessage, toStoredStatus } from "./session-message.ts";
import { planSession } from "./session-plan.ts";
import type { SessionRoute, SessionRoutes } from "./session-routes.ts";
import { isEnded } from "./session-states.ts";
import { findSession, listSessions } from "./store.ts";
import { commandContext, createWorkerCommands } from "./worker-commands.ts";

/** What the service stands on. */
export interface SessionServiceParts extends SessionLaunchParts {
  readonly db: Database;
  readonly channels: Channels;
  readonly routes: SessionRoutes;
  readonly tiers: Tiers;
  readonly log: Log;
  readonly errorsBase: string;
}

const defaultPage = 20;

/** Milliseconds that a destroy waits for the worker to take note. The end is committed before; a heartbeat heals the rest. */
const destroyPatience = 2_000;

const sessionId = idPattern("ses");

/** Splits `name:value` at the first colon. */
function splitLabel(label: string): [name: string, value: string] {
  const [name = ""] = label.split(":", 1);
  return [name, label.slice(name.length + 1)];
}

/** Makes the implementation of SessionService. */
export function createSessionService(parts: SessionServiceParts): ServiceImplementation<typeof SessionService> {
  const { db, channels, routes, tiers, log, errorsBase } = parts;
  const launch = createSessionLaunch(parts);
  const workerCommands = createWorkerCommands(routes, channels);
  const commands = createSessionCommands(workerCommands, routes);
  const follow = createSessionEvents({ events: parts.events, routes, commands: workerCommands });
  const drive = createDrive({ commands, follow, routes, errorsBase });

  async function list({ principal }: Call, { limit = defaultPage, cursor, status, label }: ListSessionsRequest) {
    const query = {
      accountId: principal.accountId,
      status: toStoredStatus(status),
      labels: Object.fromEntries(label.map(splitLabel)),
      before: readCursor(cursor, sessionId),
    };
    const { rows, position } = cutPage(await listSessions(db, { ...query, limit: limit + 1 }), limit);
    return create(ListSessionsResponseSchema, { data: rows.map(toSessionMessage), ...position });
  }

  /** Has the worker end the browser. When it cannot be told now, the next heartbeat tells it. */
  async function tellWorker(call: Call, route: SessionRoute): Promise<void> {
    const link = channels.to(route.worker);
    const command = create(DestroyCommandSchema, {
      context: commandContext(call, route.row.id, route, destroyPatience),
    });
    const options = { metadata: link.metadata, timeoutMs: destroyPatience };
    await callUnary(link.client, WorkerService.method.destroy, command, options).catch((error: unknown) => {
      log.debug({ err: error, session_id: route.row.id }, "a worker could not be told of a destroy");
    });
  }

  async function destroy(call: Call, id: string): Promise<void> {
    const { accountId } = call.principal;
    const route = await routes.findRunning(id, accountId);
    const ended = await db.transaction((tx) => endSession(parts, tx, id, { reason: "destroyed", accountId }));
    if (!ended) {
      routes.forget(id);
      await routes.findRunning(id, accountId);
      throw noSession();
    }
    await tellWorker(call, { ...route, placementEpoch: BigInt(ended.placement_epoch) });
  }

  return {
    async create(call, request) {
      const tier = tiers.get(call.principal.tier);
      return launch({ call, tier, plan: planSession(request, tier) });
    },
    list,
    async get({ principal }, { id }) {
      const row = sessionId.test(id) ? await findSession(db, id, principal.accountId) : undefined;
      if (!row) throw noSession();
      if (isEnded(row.status)) throw sessionGone(row);
      return toSessionMessage(row);
    },
    navigate: (call, request) => commands.navigate(call, request.id, request),
    interact: (call, request) => commands.interact(call, request.id, request),
    wait: (call, request) => commands.wait(call, request.id, request),
    getState: (call, { id }) => commands.state(call, id),
    capture: (call, request) => collectCapture(commands.capture(call, request.id, request)),
    captureStream: (call, request) => commands.capture(call, request.id, request),
    async destroy(call, { id }) {
      await destroy(call, id);
      return create(EmptySchema);
    },
    drive,
    watch: (call, { id, afterEventId }) => follow({ call, id, after: afterEventId, signal: call.signal }),
  };
}
