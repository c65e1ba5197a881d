import { join } from "node:path";
import { createEventLog, type EventLog } from "../events/event-log.ts";
import { bundledWorkerProgram, createFleet, type Fleet, type FleetParts } from "../fleet/fleet.ts";
import { accountDirectory } from "../fleet/kubernetes-api.ts";
import { createPodCosts } from "../fleet/pod-costs.ts";
import { findPoolDemand, type PoolDemand } from "../fleet/pool-demand.ts";
import { systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { createIds } from "../platform/ids.ts";
import { createLifetime, type Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { databaseTarget } from "../platform/postgres/database-server.ts";
import { openStorage } from "../platform/postgres/storage.ts";
import { checkSecretsKeys } from "../platform/secrets/known-keys.ts";
import { createSealer, type Sealer } from "../platform/secrets/secrets-sealer.ts";
import { createProfileMetrics } from "../profiles/profile-metrics.ts";
import { createProfileUses, type ProfileUses } from "../profiles/profile-uses.ts";
import { createSessionLogStore, type SessionLogStore } from "../sessions/logs/session-log-store.ts";
import { createSessionMetrics, type SessionMetrics } from "../sessions/session-metrics.ts";
import { createSessionKeeper } from "../sessions/session-sweep.ts";
import { migrations } from "./migrations.ts";

/** Dependencies of the fleet and its session keeper. */
export interface SessionFleetParts extends Omit<FleetParts, "keeper"> {
  readonly sessionLogStore: SessionLogStore | undefined;
  readonly events: EventLog;
  readonly uses: ProfileUses;
  readonly sessionMetrics: SessionMetrics;
}

/** Creates the fleet with its session keeper. */
export function createSessionFleet({ uses, ...parts }: SessionFleetParts): Fleet {
  return createFleet({ ...parts, keeper: createSessionKeeper({ ...parts, profiles: { uses } }) });
}

/** Returns the worker program for a single-machine service; undefined for other services. */
export const workerProgramOf = ({ embedded }: Config): string | undefined =>
  embedded ? bundledWorkerProgram : undefined;

/**
 * Registers workers, renews and sweeps leases, ends sessions by deadline, and migrates the database. Serves no client
 * requests, which could delay the renewal of leases.
 */
export interface ControlPlane {
  readonly fleet: Fleet;
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  /** Returns whether PostgreSQL responds. */
  isReady(): Promise<boolean>;
  /** Returns the demand of a worker pool, or undefined if no worker has registered with the pool. */
  demandOf(pool: string): Promise<PoolDemand | undefined>;
}

/** Number of PostgreSQL connections. A few suffice, because heartbeats and sweeps are short. */
const poolSize = 10;

export interface ControlPlaneOptions extends Pick<PlatformParts, "config" | "log" | "metrics" | "bus"> {
  /** Started before the bus is used. */
  readonly busLifetime?: Part;
  readonly forwardSpans: FleetParts["forwardSpans"];
}

export function createControlPlane(options: ControlPlaneOptions): ControlPlane {
  const { config, log, metrics, bus, busLifetime = {}, forwardSpans } = options;
  const clock = systemClock;
  const ids = createIds(clock);
  const schemaMode = config.migrates ? "migrate" : "await";
  const storage = openStorage(databaseTarget(config), log, migrations, { schemaMode, poolSize });
  const { db } = storage;
  const base = { config, db, bus, ids, clock, log, metrics };
  const events = createEventLog(base);
  const sealer = createLogSealer(config, log);
  // In embedded mode, the gateway creates and checks the key file.
  const keyCheck: Part = sealer && !config.embedded ? { start: () => checkSecretsKeys(base, sealer) } : {};
  const uses = createProfileUses({ ...base, events, metrics: createProfileMetrics(metrics) });
  const fleet = createSessionFleet({
    ...base,
    events,
    sessionLogStore: sealer && createSessionLogStore({ ...base, sealer }),
    uses,
    sessionMetrics: createSessionMetrics(metrics),
    workerProgram: workerProgramOf(config),
    forwardSpans,
    env: process.env,
  });
  const access = config.workerPods && { ...config.workerPods, directory: accountDirectory };
  const podCosts = access ? createPodCosts({ ...base, access, namespace: access.namespace }) : {};
  return {
    fleet,
    ...createLifetime([storage.part, busLifetime, keyCheck, fleet, podCosts], log),
    isReady: storage.isReady,
    demandOf: (pool) => findPoolDemand(db, pool),
  };
}

/** Creates the sealer of session logs. Outside embedded mode without keys, logs a warning and returns undefined. */
function createLogSealer({ embedded, secretsKeys: keys, dataDir }: Config, log: Log): Sealer | undefined {
  if (embedded || keys.length > 0)
    return createSealer({ keys, file: embedded ? join(dataDir, "secrets-key") : undefined });
  log.warn({}, "SECRETS_KEYS is not set: logs of ended sessions are not stored");
  return undefined;
}
