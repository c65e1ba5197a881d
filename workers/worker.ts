import { chmod, rm } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Isolation, SessionLogPageSchema } from "../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { SessionEndedReason } from "../src/gen/pilothouse/v1/session_pb.ts";
import { findBrowsers, realDisk } from "../src/platform/browsers/browser-paths.ts";
import { makePassableDirectory } from "../src/platform/data-directory.ts";
import type { Environment } from "../src/platform/environment.ts";
import { createInternalServer, type InternalServer } from "../src/platform/internal-server.ts";
import { describeWeakness } from "../src/platform/isolation.ts";
import type { Log } from "../src/platform/log.ts";
import { processIdentity } from "../src/platform/release.ts";
import type { WorkerConfig } from "./base/config.ts";
import { Reports } from "./base/reports.ts";
import { probeRuntimes } from "./base/runtimes.ts";
import { drain } from "./drain.ts";
import { type BlockLists, readBlockLists } from "./egress/block-lists.ts";
import { MediaServer } from "./egress/media-server.ts";
import { FetchBrowsers } from "./fetch/fetch-browsers.ts";
import { ControlCaller } from "./fleet/control-caller.ts";
import { FleetLink, type WorkerStopReason } from "./fleet/fleet-link.ts";
import { IdentityFile } from "./fleet/identity.ts";
import { LogSender } from "./fleet/log-sender.ts";
import { ReportSender } from "./fleet/report-sender.ts";
import { SpanSender } from "./fleet/span-sender.ts";
import { BoundsWatchdog } from "./isolation/bounds-watchdog.ts";
import { ConfinementError } from "./isolation/confinement-error.ts";
import { sessionBounds } from "./isolation/session-bounds.ts";
import { SlotPool } from "./isolation/slot-pool.ts";
import { BrowserPool } from "./pool/browser-pool.ts";
import { PressureReader } from "./pressure/pressure-reader.ts";
import { PressureWatch } from "./pressure/pressure-watch.ts";
import { ProfileStore } from "./profiles/profile-store.ts";
import { recoverProfile } from "./profiles/save-profile.ts";
import { SessionTable, type SessionTableOptions } from "./session/session-table.ts";
import { createWorkerMetrics } from "./worker-metrics.ts";
import { WorkerServer } from "./worker-server.ts";

/** Maximum number of files listed in the log of an ended session. Names of 255 bytes each fit into the log's 64 KiB. */
const maxListedFiles = 200;

export interface WorkerOptions {
  readonly config: WorkerConfig;
  /** Environment variables, including the paths of browsers. */
  readonly env: Environment;
  readonly log: Log;
  /** Called when the worker must drain or stop, or has lost its lease. */
  onStopRequired(stopReason: WorkerStopReason): void;
}

export interface Worker {
  /** Refuses new sessions and fetches. Resolves when all have ended, after `timeoutMs`, or when the signal aborts. */
  drain(timeoutMs: number, signal: AbortSignal): Promise<void>;
  /** Refuses new sessions and fetches, ends all sessions with the reason, fails all fetches and removes all files. */
  stop(reason: SessionEndedReason): Promise<void>;
}

/** Starts a worker: finds browsers, creates isolation slots, listens, and registers with the control processes. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const { config, log } = options;
  const resources = await prepareResources(options);
  const { runtimes, slots } = resources;
  const sessionParts = makeSessions(options, resources, {
    onRoom: () => void link.sendHeartbeat(),
    onLog: (placement, session) => {
      const files = session.files.slice(0, maxListedFiles);
      logSender.add(placement, () => {
        const { entries, dropped } = session.readLog(0);
        return create(SessionLogPageSchema, { entries, dropped, files });
      });
    },
  });
  const { sessions, browsers, fetches, metrics } = sessionParts;
  await probeBrowsers(browsers, slots);
  const link: FleetLink = await makeLink(options, resources, sessions, () => spanSender.start());
  const spanSender = new SpanSender(link, log);
  const logSender = new LogSender({ link, onOutcome: (outcome, count) => metrics.logs.inc({ outcome }, count) });
  const server = new WorkerServer({ ...resources, sessions, fetches, log, secretHash: () => link.secretHash, metrics });
  await listenOn(server, config);
  const pressure = watchPressure({ config, sessions, fetches, link, log });
  metrics.registerPressure(pressure);
  const isUseful = () => !browsers.launchFails || sessions.running.length > 0;
  const isReady = () => link.isRegistered && !sessions.isDraining && isUseful();
  const { isolation, browserSandbox } = config;
  const about = `isolation ${isolation}\nbrowser sandbox ${browserSandbox}\n`;
  const internal =
    config.internal && createInternalServer({ ...config.internal, isReady, metrics: metrics.registry, about });
  await internal?.start();
  pressure.start();
  browsers.start();
  await link.start();
  const sender = new ReportSender(resources.reports, link);
  sender.start();
  log.info(
    {
      ...processIdentity("worker"),
      slots: config.slots,
      runtimes: [...runtimes.keys()],
      isolation,
      browser_sandbox: browserSandbox,
    },
    "the worker has started",
  );
  return {
    drain: (timeoutMs, signal) => drain({ sessions, fetches, link }, timeoutMs, signal),
    stop: (reason) =>
      stopAll(
        { ...resources, ...sessionParts, link, sender, logSender, spanSender, server, internal, pressure },
        reason,
      ),
  };
}

/** Components and data that sessions use. */
interface SessionResources {
  readonly runtimes: Awaited<ReturnType<typeof probeRuntimes>>;
  readonly slots: SlotPool;
  readonly mediaServer: MediaServer | undefined;
  readonly profiles: ProfileStore;
  readonly reports: Reports;
  readonly blockLists: BlockLists;
}

async function prepareResources({ config, env, log }: WorkerOptions): Promise<SessionResources> {
  const blockLists = await readBlockLists(config.blockLists);
  const executables = findBrowsers({ env, dataDirectory: config.dataDir, platform: process.platform, disk: realDisk });
  const runtimes = await probeRuntimes(executables);
  if (runtimes.size === 0) throw new Error("no browser is installed: set HEADLESS_SHELL_PATH or CHROMIUM_PATH");
  // The files of sessions are on disk, because they may exceed the machine's memory.
  const storage = join(config.dataDir, "slots");
  const mediaServer = config.livekitUrl === undefined ? undefined : new MediaServer(config.livekitUrl);
  const slots = new SlotPool({
    size: config.slots,
    executables,
    log,
    allow: config.egressAllow,
    showRemedy: config.embedded,
    recoverProfile: (directory, launchRecord) => recoverProfile(directory, launchRecord, log),
    isolation: config.isolation,
    browserSandbox: config.browserSandbox,
    scratch: config.scratch,
    storage,
    mediaServer,
  });
  const weakness = describeWeakness(config);
  if (weakness !== undefined) log.warn({}, weakness);
  const profiles = new ProfileStore(config.dataDir, config.index);
  for (const path of [config.dataDir, storage]) await makePassableDirectory(path);
  await profiles.start();
  await slots.start();
  return { runtimes, slots, mediaServer, profiles, reports: new Reports(), blockLists };
}

/**
 * Launches the first browser before the worker registers. If that fails, stops the pools and rejects: a worker without
 * sandboxed browsers must not accept sessions unless the sandbox is disabled.
 */
async function probeBrowsers(browsers: BrowserPool, slots: SlotPool): Promise<void> {
  try {
    await browsers.probe();
  } catch (error) {
    await browsers.stop();
    await slots.stop();
    if (slots.sandbox === "none") throw error;
    const errorOutput = error instanceof Error ? error.message : String(error);
    const what = "the first browser could not be launched in its sandbox";
    throw new ConfinementError({ what, errorOutput, isRoot: false, optOut: "BROWSER_SANDBOX=off" });
  }
}

/** Creates the session table, the fetch browsers, and the browser pool, metrics and watchdog that both use. */
function makeSessions(
  { config, log }: WorkerOptions,
  resources: SessionResources,
  listeners: Pick<SessionTableOptions, "onRoom" | "onLog">,
) {
  const { runtimes, slots, mediaServer, profiles, reports, blockLists } = resources;
  const metrics = createWorkerMetrics({
    sessions: () => sessions,
    browsers: () => browsers,
    fetches: () => fetches,
    slots,
    profiles,
    isolation: config,
  });
  const watchdog = new BoundsWatchdog({
    bounds: sessionBounds,
    onOver: (bound) => metrics.sessionsOverBound.inc({ bound }),
  });
  const { embedded: showRemedy } = config;
  const fetches = new FetchBrowsers({
    browsers: () => browsers,
    runtimes,
    watchdog,
    showRemedy,
    log,
    isOpen: () => sessions.isOpen,
  });
  const browsers: BrowserPool = new BrowserPool({
    slots,
    runtimes: runtimes.keys(),
    max: config.warmBrowsers,
    mediaServer,
    log,
    spares: fetches,
    isOpen: () => sessions.isOpen,
    onReady: (how, seconds) => metrics.browserReady.observe({ how }, seconds),
  });
  const sessions: SessionTable = new SessionTable({
    browsers,
    runtimes,
    showRemedy,
    log,
    watchdog,
    profiles,
    blockLists,
    ...listeners,
    onEvent: (placement, event) => {
      metrics.count(event);
      reports.append(placement, event);
    },
  });
  return { sessions, browsers, fetches, watchdog, metrics };
}

async function makeLink(
  options: WorkerOptions,
  resources: SessionResources,
  sessions: SessionTable,
  onExportsSpans: () => void,
): Promise<FleetLink> {
  const { config, log, onStopRequired } = options;
  const { runtimes, profiles } = resources;
  const identityFile = new IdentityFile(config.dataDir, config.index);
  await identityFile.claim(process.pid);
  return new FleetLink({
    control: new ControlCaller(config.control, config.fleetTls, log),
    token: config.token,
    identityFile,
    describe: () => ({
      address: config.address,
      runtimes: [...runtimes.keys()],
      slots: config.slots,
      pool: config.pool,
      isolation: config.isolation === "namespace" ? Isolation.NAMESPACE : Isolation.FLAGS,
      unsandboxed: config.browserSandbox === "off",
    }),
    sessions,
    profiles,
    log,
    onStopRequired,
    onExportsSpans,
  });
}

/** Closes the worker to new sessions under machine pressure, and notifies the control process at once. */
function watchPressure({
  config,
  sessions,
  fetches,
  link,
  log,
}: Pick<WorkerOptions, "config" | "log"> & Pick<Parts, "sessions" | "fetches" | "link">): PressureWatch {
  const reader = new PressureReader();
  return new PressureWatch({
    closeAt: config.closeAt,
    read: () => reader.read(),
    onChange: (closedBy, pressure) => {
      sessions.closedBy = closedBy;
      if (closedBy) fetches.dropKept();
      void link.sendHeartbeat();
      if (closedBy)
        log.warn({ closed_by: closedBy, ...pressure }, "closed to new sessions because the machine is under pressure");
      else log.info({ ...pressure }, "open to new sessions again: the pressure has ended");
    },
  });
}

async function listenOn(server: WorkerServer, { listen, fleetTls }: WorkerConfig): Promise<void> {
  const path = listen.startsWith("unix:") ? listen.slice("unix:".length) : undefined;
  // Removes the socket that a killed worker left behind.
  if (path !== undefined) await rm(path, { force: true });
  await server.listen(listen, fleetTls);
  if (path !== undefined) await chmod(path, 0o600);
}

interface Parts {
  readonly sessions: SessionTable;
  readonly fetches: FetchBrowsers;
  readonly profiles: ProfileStore;
  readonly link: FleetLink;
  readonly sender: ReportSender;
  readonly logSender: LogSender;
  readonly spanSender: SpanSender;
  readonly server: WorkerServer;
  readonly browsers: BrowserPool;
  readonly slots: SlotPool;
  readonly internal: InternalServer | undefined;
  readonly pressure: PressureWatch;
  readonly watchdog: BoundsWatchdog;
}

async function stopAll(parts: Parts, reason: SessionEndedReason): Promise<void> {
  const {
    sessions,
    fetches,
    profiles,
    link,
    sender,
    logSender,
    spanSender,
    server,
    browsers,
    slots,
    internal,
    pressure,
    watchdog,
  } = parts;
  pressure.stop();
  sessions.drain(0);
  await link.sendHeartbeat();
  await Promise.all([sessions.stop(reason), fetches.stop()]);
  watchdog.stop();
  await link.handOver(profiles);
  await sender.stop();
  await logSender.stop();
  await spanSender.stop();
  await link.stop();
  await server.stop();
  await browsers.stop();
  await slots.stop();
  await internal?.stop();
}
