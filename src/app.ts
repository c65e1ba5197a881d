import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type ApiKeys, createApiKeys } from "./api-keys/api-keys.ts";
import { ensureDeveloperKey } from "./api-keys/developer-key.ts";
import { createEventLog, type EventLog } from "./events/event-log.ts";
import { bundledWorkerProgram, createFleet, type Fleet } from "./fleet/fleet.ts";
import { createIdempotency, type Idempotency } from "./idempotency/idempotency.ts";
import { type Buckets, createBuckets } from "./limits/buckets.ts";
import { createRedisBuckets } from "./limits/redis-buckets.ts";
import { type Tiers, tiers } from "./limits/tiers.ts";
import { type Bus, createLocalBus } from "./platform/bus.ts";
import { type Clock, systemClock } from "./platform/clock.ts";
import type { Config } from "./platform/config.ts";
import { type Database, openDatabase } from "./platform/database.ts";
import { unlessLate } from "./platform/deadline.ts";
import { createEmbeddedPostgres } from "./platform/embedded-postgres.ts";
import { createGatewayLock } from "./platform/gateway-lock.ts";
import { createIds, type Ids } from "./platform/ids.ts";
import { createLog, type Log } from "./platform/log.ts";
import { createMetrics, type Metrics } from "./platform/metrics.ts";
import { createRedis } from "./platform/redis.ts";
import { createRedisBus } from "./platform/redis-bus.ts";
import { createRepeatedJob } from "./platform/repeated-job.ts";
import { createSealer } from "./platform/secrets-sealer.ts";
import { createProfiles, type Profiles } from "./profiles/profiles.ts";
import { createSessionKeeper } from "./sessions/session-keeper.ts";
import { createSessionRoutes, type SessionRoutes } from "./sessions/session-routes.ts";

/** Everything that services and policies stand on, built once per process. */
export interface App {
  readonly config: Config;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly db: Database;
  readonly bus: Bus;
  readonly events: EventLog;
  readonly apiKeys: ApiKeys;
  readonly idempotency: Idempotency;
  readonly buckets: Buckets;
  readonly tiers: Tiers;
  readonly fleet: Fleet;
  readonly sessionRoutes: SessionRoutes;
  readonly profiles: Profiles;
  /** `host:port` of private addresses that pages may reach all the same: those of our own demo. Add before the first create. */
  readonly egressAllow: string[];
  /** Key of the developer account: in embedded mode, once the app has started. */
  readonly developerKey: string | undefined;
  /** Says whether PostgreSQL answers. */
  isReady(): Promise<boolean>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** What tests and tools put in place of the real thing. */
export interface AppOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  /** Program of the embedded worker; null starts none. */
  readonly workerProgram?: string | null;
  /** What the embedded worker may see of it. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Called when the process must end: another gateway has taken the database. */
  readonly onFatal?: () => void;
}

/** What has a lifetime, in the order in which it is started; it is stopped in the opposite one. */
interface Part {
  start(): void | Promise<void>;
  stop(): void | Promise<void>;
}

/** Milliseconds for statements that run when the app is stopped. */
const closePatience = 5_000;

/** Milliseconds between two sweeps: of expired keys, and of answers kept for an Idempotency-Key. */
const sweepEvery = { keys: 60_000, answers: 600_000 };

function endProcess(): void {
  process.kill(process.pid, "SIGTERM");
}

/** Makes the data directory. Others may pass it: PostgreSQL and browsers run as users of their own below it. */
async function makeDataDirectory(path: string): Promise<void> {
  if ((await mkdir(path, { recursive: true })) !== undefined) await chmod(path, 0o711);
}

/** PostgreSQL with its migrations: that of DATABASE_URL, or one that we run. */
function createStorage(config: Config, log: Log, onFatal: () => void): { db: Database; part: Part } {
  const postgres = config.databaseUrl === undefined ? createEmbeddedPostgres(config.dataDir, log) : undefined;
  const target = postgres?.target ?? { url: config.databaseUrl ?? "" };
  // Without Redis two gateways would not hear of each other.
  const lock = config.redisUrl === undefined ? createGatewayLock(target, log, onFatal) : undefined;
  const db = openDatabase(target, log);
  let isOurs = false;
  const part: Part = {
    async start() {
      await makeDataDirectory(config.dataDir);
      await postgres?.start();
      await lock?.take();
      isOurs = true;
      await db.migrate();
    },
    async stop() {
      await lock?.release();
      // A transaction that is stuck must not keep the server from being stopped.
      await unlessLate(db.close(), closePatience, () => undefined);
      // A server that another gateway uses is left to it.
      if (isOurs) await postgres?.stop();
      else postgres?.leave();
    },
  };
  return { db, part };
}

/** What gateways share beside PostgreSQL: by Redis, or in the memory of a lone one. */
function createSharedState({ redisUrl, role }: Config, log: Log, metrics: Metrics) {
  if (redisUrl === undefined) return { bus: createLocalBus(), buckets: createBuckets(), parts: [] };
  const redis = createRedis({ url: redisUrl, log, registry: metrics.registry });
  // Who serves no requests takes no share of the buckets.
  const buckets = role === "jobs" ? createBuckets() : createRedisBuckets({ redis });
  return { bus: createRedisBus(redis), buckets, parts: [redis] };
}

/** Starts parts in order, and stops those that were started in the opposite one. Both can be called again. */
function createLifetime(parts: readonly Part[], log: Log): { start(): Promise<void>; stop(): Promise<void> } {
  const begun: Part[] = [];
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function startAll(): Promise<void> {
    for (const part of parts) {
      if (stopping) throw new Error("the app was stopped while it started");
      begun.push(part);
      await part.start();
    }
  }

  async function stopAll(): Promise<void> {
    await starting?.catch(() => undefined);
    for (const part of begun.splice(0).reverse()) {
      try {
        await part.stop();
      } catch (error) {
        log.error({ err: error }, "a part did not stop in order");
      }
    }
  }

  return {
    start: () => {
      starting ??= startAll();
      return starting;
    },
    stop: () => {
      stopping ??= stopAll();
      return stopping;
    },
  };
}

/** Background work that any one gateway of several may do, and that does no harm when all do it. */
function createJobs(apiKeys: ApiKeys, idempotency: Idempotency, log: Log): Part[] {
  const works = [
    { run: apiKeys.sweep, every: sweepEvery.keys, complaint: "expired keys cannot be swept at the moment" },
    { run: idempotency.sweep, every: sweepEvery.answers, complaint: "kept answers cannot be swept at the moment" },
  ];
  return works.map((work) => createRepeatedJob(work, log));
}

/** Builds the app of a gateway; nothing is started yet. */
export function createApp(config: Config, options: AppOptions = {}): App {
  const { clock = systemClock, log = createLog(config.logLevel), env = process.env } = options;
  const ids = createIds(clock);
  const metrics = createMetrics();
  const { bus, buckets, parts: shared } = createSharedState(config, log, metrics);
  const storage = createStorage(config, log, options.onFatal ?? endProcess);
  const { db } = storage;
  const events = createEventLog({ db, bus, ids, log });
  const apiKeys = createApiKeys({ db, bus, ids, clock });
  const idempotency = createIdempotency(db);
  const sessionRoutes = createSessionRoutes(db, bus);
  const keysFile = config.embedded ? join(config.dataDir, "secrets-key") : undefined;
  const sealer = createSealer({ keys: config.secretsKeys, file: keysFile });
  const channels = () => fleet.channels;
  const profiles = createProfiles({ db, events, bus, log, metrics, tiers, sealer, channels });
  const keeper = createSessionKeeper({ db, events, bus, metrics, profiles });
  const bundled = config.embedded ? bundledWorkerProgram : undefined;
  const workerProgram = options.workerProgram === null ? undefined : (options.workerProgram ?? bundled);
  const fleet: Fleet = createFleet({ config, db, bus, ids, log, metrics, keeper, workerProgram, env });
  let developerKey: string | undefined;
  const firstKey: Part = {
    async start() {
      if (config.embedded) developerKey = await ensureDeveloperKey(db, ids, config.dataDir);
    },
    stop: () => undefined,
  };
  const jobs = config.role === "api" ? [] : createJobs(apiKeys, idempotency, log);
  const parts = [storage.part, ...shared, firstKey, sealer, apiKeys, sessionRoutes, events, profiles, fleet, ...jobs];
  const lifetime = createLifetime(parts, log);
  return {
    config,
    clock,
    ids,
    log,
    metrics,
    db,
    bus,
    events,
    apiKeys,
    idempotency,
    buckets,
    tiers,
    fleet,
    sessionRoutes,
    profiles,
    egressAllow: [],
    get developerKey() {
      return developerKey;
    },
    isReady: () =>
      db.named({ name: "ready", text: "select 1" }, []).then(
        () => true,
        () => false,
      ),
    ...lifetime,
  };
}
