import type { Registry } from "prom-client";
import { createEventLog, type EventLog } from "./events/event-log.ts";
import { bundledWorkerProgram, createFleet, type Fleet } from "./fleet/fleet.ts";
import { migrations } from "./migrations.ts";
import type { Bus } from "./platform/bus.ts";
import { type Clock, systemClock } from "./platform/clock.ts";
import type { Config } from "./platform/config.ts";
import { createIds, type Ids } from "./platform/ids.ts";
import { createLifetime, type Part } from "./platform/lifetime.ts";
import type { Log } from "./platform/log.ts";
import type { Database } from "./platform/postgres/database.ts";
import { databaseTarget, openStorage } from "./platform/postgres/storage.ts";
import { createProfileMetrics } from "./profiles/profile-metrics.ts";
import { createProfileUses, type ProfileUses } from "./profiles/profile-uses.ts";
import { createSessionKeeper } from "./sessions/session-keeper.ts";
import { createSessionMetrics, type SessionMetrics } from "./sessions/session-metrics.ts";

/** What keeps workers and ends sessions stands on. */
export interface SessionFleetParts {
  readonly config: Config;
  readonly db: Database;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
  readonly events: EventLog;
  readonly uses: ProfileUses;
  readonly sessionMetrics: SessionMetrics;
  readonly workerProgram: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Makes the fleet with what becomes of its sessions. */
export function createSessionFleet({ uses, ...parts }: SessionFleetParts): Fleet {
  return createFleet({ ...parts, keeper: createSessionKeeper({ ...parts, profiles: { uses } }) });
}

/** Program of the worker that is started where the configuration has one. */
export const workerProgramOf = ({ embedded }: Config): string | undefined =>
  embedded ? bundledWorkerProgram : undefined;

/** The control process: nothing in it is as long or as slow as a client wants, so leases are renewed in time. */
export interface ControlPlane {
  readonly fleet: Fleet;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Says whether PostgreSQL answers. */
  isReady(): Promise<boolean>;
}

/** Connections to PostgreSQL: heartbeats and sweeps are short. */
const poolSize = 10;

/** What the control process shares with gateways, and what has to be started for that. */
export interface ControlPlaneOptions {
  readonly config: Config;
  readonly log: Log;
  readonly metrics: Registry;
  readonly bus: Bus;
  readonly busPart?: Part;
}

/** Makes the control process; nothing is started yet. */
export function createControlPlane({ config, log, metrics, bus, busPart = {} }: ControlPlaneOptions): ControlPlane {
  const clock = systemClock;
  const ids = createIds(clock);
  const storage = openStorage(databaseTarget(config), log, migrations, { readying: "migrate", poolSize });
  const { db } = storage;
  const base = { config, db, bus, ids, clock, log, metrics };
  const events = createEventLog(base);
  const uses = createProfileUses({ ...base, events, metrics: createProfileMetrics(metrics) });
  const fleet = createSessionFleet({
    ...{ ...base, events, uses, sessionMetrics: createSessionMetrics(metrics) },
    ...{ workerProgram: workerProgramOf(config), env: process.env },
  });
  return {
    fleet,
    ...createLifetime([storage.part, busPart, fleet], log),
    isReady: storage.isReady,
  };
}
