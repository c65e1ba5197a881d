import { join } from "node:path";
import type { Registry } from "prom-client";
import { createModels } from "../agents/llm/models.ts";
import { createAgentTurns } from "../agents/turns/agent-turns.ts";
import { createTurnMetrics } from "../agents/turns/turn-metrics.ts";
import { createAuditLog } from "../audit/audit-log.ts";
import { createLogins } from "../auth/logins/logins.ts";
import { createNetworkThrottles } from "../auth/logins/network-throttles.ts";
import { createPasswordProof } from "../auth/passwords/password-proof.ts";
import { createPasswords, type PasswordOptions } from "../auth/passwords/passwords.ts";
import { createProcessors } from "../billing/processors.ts";
import { createEventLog } from "../events/event-log.ts";
import { createChannels } from "../fleet/channels.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { createApiKeys } from "../identity/api-keys/api-keys.ts";
import { ensureDeveloperKey } from "../identity/api-keys/developer-key.ts";
import { createBearers } from "../identity/bearers.ts";
import { createThrottles } from "../identity/throttle.ts";
import { createIdempotency } from "../jobs/idempotency/idempotency.ts";
import { createJobQueues } from "../jobs/job-queues.ts";
import type { ServedService } from "../kernel/registry.ts";
import { createTerms } from "../legal/terms.ts";
import { createArrangements } from "../limits/arrangements.ts";
import { createBuckets } from "../limits/buckets.ts";
import { createLimits } from "../limits/limits.ts";
import { createRedisBuckets } from "../limits/redis-buckets.ts";
import { createRedisStreamSlots } from "../limits/redis-stream-slots.ts";
import { createStreamSlots } from "../limits/stream-slots.ts";
import { readTiersFile } from "../limits/tiers-file.ts";
import { createMailer } from "../mail/mailer.ts";
import { type Bus, createLocalBus } from "../platform/bus.ts";
import { type Clock, systemClock } from "../platform/clock.ts";
import type { Config } from "../platform/config.ts";
import { createIds, randomText } from "../platform/ids.ts";
import { createLifetime, type Part } from "../platform/lifetime.ts";
import { createLog, type Log } from "../platform/log.ts";
import { createMetrics } from "../platform/metrics.ts";
import { readOutgoingOptions } from "../platform/outgoing/outgoing-options.ts";
import type { Resolve } from "../platform/outgoing/target-resolution.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { createDatabaseServer, databaseTarget } from "../platform/postgres/database-server.ts";
import type { DatabaseTarget } from "../platform/postgres/database-target.ts";
import { openStorage } from "../platform/postgres/storage.ts";
import { createRedis } from "../platform/redis/redis.ts";
import { createRedisBus } from "../platform/redis/redis-bus.ts";
import { checkSecretsKeys } from "../platform/secrets/known-keys.ts";
import { createSealer } from "../platform/secrets/secrets-sealer.ts";
import { createProfiles } from "../profiles/profiles.ts";
import { createSessionRoutes } from "../sessions/commands/session-routes.ts";
import { createControls } from "../sessions/control/control.ts";
import { createControlHeartbeats } from "../sessions/control/control-heartbeats.ts";
import { createSessionLogStore } from "../sessions/logs/session-log-store.ts";
import { createRoomGuests } from "../sessions/media/room-guests.ts";
import { createSessionMetrics } from "../sessions/session-metrics.ts";
import { createSessionQuota } from "../sessions/session-quota.ts";
import { createSessions } from "../sessions/sessions.ts";
import { createStatus } from "../status/status.ts";
import { createSender } from "../webhooks/sender.ts";
import type { AppParts } from "./app-parts.ts";
import { createBackground } from "./background.ts";
import { createSessionFleet, workerProgramOf } from "./control-plane.ts";
import { features } from "./features.ts";
import { migrations } from "./migrations.ts";

/** The service without its transports. */
export interface App extends AppParts {
  /** Services of all features. Calls to other services return `not-found`. */
  readonly services: readonly ServedService[];
  /** Fleet, if this process manages the workers. */
  readonly fleet: Fleet | undefined;
  /** Key of the developer account in embedded mode, after `start`. */
  readonly developerKey: string | undefined;
  /** Returns whether PostgreSQL responds. */
  isReady(): Promise<boolean>;
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
}

/** Settings from the process that creates the app, and replacements for parts of the app. */
export interface AppOptions {
  readonly clock?: Partial<Clock>;
  readonly log?: Log;
  /**
   * With `gateway`, other processes run the database server, migrations and workers. With `all` (tests and tools), this
   * process runs all of these.
   */
  readonly scope?: "all" | "gateway";
  /** Bus to the other processes of a single-machine service. */
  readonly bus?: Bus | undefined;
  /** Secret part of the outbox URL. Default: random at each start. */
  readonly linkSecret?: string | undefined;
  /** Replaces the configured database with a running one. */
  readonly database?: DatabaseTarget | undefined;
  /** Replaces name resolution for webhooks and LLM providers. */
  readonly resolve?: Resolve;
  /** Program of the embedded worker, or null for none. */
  readonly workerProgram?: string | null;
  /** Environment, of which the embedded worker receives selected variables. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Called if the process must exit because another service has taken the database. */
  readonly onFatal?: () => void;
  /** Milliseconds between samples of the status. */
  readonly statusEvery?: number;
  /** Private addresses (`host:port`) that the browsers of sessions may reach, such as those of the demo. */
  readonly egressAllow?: readonly string[];
  readonly passwords?: PasswordOptions | undefined;
}

function endProcess(): void {
  process.kill(process.pid, "SIGTERM");
}

/** Creates the state that gateways share through Redis; without Redis, a single gateway keeps it in memory. */
function createSharedState({ redisUrl, role }: Config, clock: Clock, log: Log, registry: Registry, localBus: Bus) {
  const own = { bus: localBus, buckets: createBuckets(), streamSlots: createStreamSlots(), parts: [] };
  if (redisUrl === undefined) return own;
  const redis = createRedis({ url: redisUrl, log, registry });
  const bus = createRedisBus(redis);
  // A process without requests must not reduce the other processes' shares of the buckets.
  if (role === "jobs") return { ...own, bus, parts: [redis] };
  const streamSlots = createRedisStreamSlots({ redis, clock, log });
  return { bus, buckets: createRedisBuckets({ redis }), streamSlots, parts: [redis, streamSlots] };
}

/** Creates the parts for sign-up, login and proofs of identity. */
function createIdentityParts(
  parts: Pick<AppParts, "db" | "bus" | "ids" | "clock" | "metrics">,
  options: PasswordOptions | undefined,
) {
  const throttles = createThrottles(parts);
  const countAttempt = createNetworkThrottles({ ...parts, throttles });
  const passwords = createPasswords(parts.metrics, options);
  const provePassword = createPasswordProof({ throttles, countAttempt, passwords });
  return { throttles, countAttempt, passwords, provePassword, logins: createLogins(parts) };
}

/** Creates the app of a gateway without starting it. */
export function createApp(config: Config, options: AppOptions = {}): App {
  const { log = createLog(config.logLevel), env = process.env, egressAllow = [], scope = "all" } = options;
  const { bus: localBus = createLocalBus(), linkSecret = randomText(32), database, onFatal = endProcess } = options;
  const isWhole = scope === "all";
  const clock: Clock = { ...systemClock, ...options.clock };
  const ids = createIds(clock);
  const metrics = createMetrics();
  const shared = createSharedState(config, clock, log, metrics, localBus);
  const { bus, buckets, streamSlots } = shared;
  const target = database ?? databaseTarget(config);
  const schemaMode = isWhole && config.migrates ? "migrate" : "await";
  const storage = openStorage(target, log, migrations, { schemaMode });
  const { db } = storage;
  const keysFile = config.embedded ? join(config.dataDir, "secrets-key") : undefined;
  const sealer = createSealer({ keys: config.secretsKeys, file: keysFile });
  const platform: PlatformParts = { config, clock, ids, log, metrics, db, bus, sealer };
  const events = createEventLog(platform);
  const apiKeys = createApiKeys(platform);
  const kinds = features.flatMap(({ bearers }) => bearers?.(db) ?? []);
  const bearers = createBearers({ ...platform, kinds, registry: metrics });
  const limits = createLimits(clock, readTiersFile(config.tiersFile));
  const idempotency = createIdempotency(platform);
  const jobQueues = createJobQueues(platform);
  const outgoing = readOutgoingOptions(config);
  const resolving = { ...outgoing, ...(options.resolve && { resolve: options.resolve }) };
  const sender = createSender({ config, clock, ...resolving });
  const models = createModels({ config, ...resolving });
  const mailer = createMailer({ ...platform, jobQueues, linkSecret });
  const identity = createIdentityParts(platform, options.passwords);
  const status = createStatus({ ...platform, jobQueues, mailer, throttles: identity.throttles }, options.statusEvery);
  const sessionRoutes = createSessionRoutes(platform);
  const sessionMetrics = createSessionMetrics(metrics);
  // The embedded worker is reached through a local socket, without TLS.
  const channels = createChannels(config.embedded ? undefined : config.fleetTls, log);
  const profiles = createProfiles({ ...platform, events, limits, mailer, channels });
  const { workerProgram = workerProgramOf(config) } = options;
  const server = isWhole ? createDatabaseServer({ config, log, onFatal, database }) : {};
  const sessionLogStore = createSessionLogStore(platform);
  const fleetParts = { ...platform, events, sessionMetrics, env, sessionLogStore, uses: profiles.uses };
  const fleet = isWhole ? createSessionFleet({ ...fleetParts, workerProgram: workerProgram ?? undefined }) : undefined;
  const quota = createSessionQuota({ ...platform, limits, mailer, events, sessionMetrics, profiles });
  const sessions = createSessions({
    ...platform,
    events,
    limits,
    quota,
    sessionMetrics,
    profiles,
    egressAllow,
    routes: sessionRoutes,
    launches: status.sources.tally("sessions"),
    channels,
    queueMs: config.queueMs,
    proxyCheck: config.proxyCheck,
  });
  let developerKey: string | undefined;
  const firstKey: Part = {
    async start() {
      if (config.embedded) developerKey = await ensureDeveloperKey(db, ids, config.dataDir);
    },
  };
  const audit = createAuditLog(platform);
  const controlHeartbeats = createControlHeartbeats(platform);
  const guests = createRoomGuests({ sessions, bearers, ids, config });
  const turnMetrics = createTurnMetrics(metrics);
  const turns = createAgentTurns({ ...platform, events, sessions, models, jobQueues, turnMetrics });
  const connections: Part = { stop: () => channels.close() };
  const parts: AppParts = {
    ...platform,
    buckets,
    streamSlots,
    events,
    limits,
    apiKeys,
    bearers,
    idempotency,
    jobQueues,
    mailer,
    sender,
    models,
    turns,
    turnMetrics,
    profiles,
    sessions,
    ...identity,
    audit,
    controls: createControls({ ...platform, events, audit, jobQueues }),
    controlHeartbeats,
    guests,
    legal: createTerms(platform),
    arrangements: createArrangements(platform),
    processors: createProcessors({ ...platform, outgoing }),
    status,
  };
  const created = features.flatMap((feature) => feature.create?.(parts) ?? []);
  const lifetime = createLifetime(
    [
      server,
      storage.part,
      ...shared.parts,
      firstKey,
      sealer,
      { start: () => checkSecretsKeys({ db, log }, sealer) },
      bearers,
      apiKeys,
      idempotency,
      sessionRoutes,
      controlHeartbeats,
      guests,
      events,
      connections,
      fleet ?? {},
      mailer,
      sender,
      models,
      // If the role is `api`, other processes run the background parts.
      ...createBackground(config.role === "api" ? [] : created, platform, target),
      status,
    ],
    log,
  );
  return {
    ...parts,
    services: created.flatMap(({ served = [] }) => served),
    fleet,
    get developerKey() {
      return developerKey;
    },
    isReady: storage.isReady,
    ...lifetime,
  };
}
