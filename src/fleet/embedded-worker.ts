import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../platform/log.ts";
import { commandLine, type EndingStep, isAlive } from "../platform/process-control.ts";
import { createSilence } from "../platform/silence.ts";
import { StartRefused } from "../platform/start-refused.ts";
import { createSupervisor } from "../platform/supervisor.ts";

/** Milliseconds that a worker has until its first heartbeat: it tries its browsers and makes its slots first. */
const comingUpMs = 60_000;

/** The worker ends its sessions first; then it and whatever it started are killed as a group. */
const endingSteps: readonly EndingStep[] = [
  { signal: "SIGTERM", patience: 10_000 },
  { signal: "SIGKILL", patience: 2_000, group: true },
];

/** Above this many bytes the worker's log begins anew when it is started. */
const longestLog = 10 * 2 ** 20;

/** A worker runs hostile pages: of our environment it gets what is named here, and so no credentials. */
const passedOn =
  /^(PATH|HOME|USER|LANG|LC_.*|TZ|TMPDIR|XDG_.*|NODE_EXTRA_CA_CERTS|NODE_COMPILE_CACHE|OTEL_.*|LOG_LEVEL|CHROMIUM_PATH|HEADLESS_SHELL_PATH|PLAYWRIGHT_BROWSERS_PATH|WORKER_SLOTS|WARM_BROWSERS|CLOSE_AT_.*|SCRATCH_DIR|EGRESS_ALLOW|ISOLATION|BROWSER_SANDBOX|LIVEKIT_URL)$/;

/** The one worker of embedded mode. */
export interface EmbeddedWorker {
  /** Goes on with a worker that outlived its gateway, else starts one; replaces it when it dies or falls silent. */
  start(): Promise<void>;
  /** Ends the worker with all that it runs. */
  stop(): Promise<void>;
  /**
   * Resolves at its first heartbeat, or when it is stopped. Rejects when it has ended by itself before: then it cannot run
   * here, and is not started again.
   */
  readonly up: Promise<void>;
  /** Its process, while there is one. */
  readonly pid: number | undefined;
}

/** What looking after the worker takes. */
export interface EmbeddedWorkerOptions {
  readonly dataDir: string;
  /** Path of the program, such as `workers/main.ts`. */
  readonly program: string;
  readonly workerToken: string;
  readonly log: Log;
  /** How many heartbeats of the worker this gateway has heard. */
  readonly heartbeats: () => number;
  /** Milliseconds without a heartbeat after which the worker is taken for dead: its lease. */
  readonly leaseMs: number;
  /** Called when the worker has died by itself, also while no gateway looked, before it is started again. */
  readonly onDeath: () => void | Promise<void>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Address of the control process's socket for the embedded worker. */
export const controlSocket = (dataDir: string): string => `unix:${join(dataDir, "fleet.sock")}`;

/** Address of the embedded worker's socket. */
const workerSocket = (dataDir: string): string => `unix:${join(dataDir, "worker.sock")}`;

/** Opens the log of the worker, anew when it has grown too long. */
async function openLog(path: string): Promise<FileHandle> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  return open(path, size > longestLog ? "w" : "a", 0o600);
}

/** Reads what a worker that cannot run has said last, in words: its other lines are JSON, or Node's. */
async function lastWords(logFile: string): Promise<string> {
  const lines = (await readFile(logFile, "utf8")).trimEnd().split("\n");
  return lines.slice(lines.findLastIndex((line) => /^[{(]/.test(line)) + 1).join("\n");
}

/** Makes what looks after the worker; nothing is started yet. */
export function createEmbeddedWorker(options: EmbeddedWorkerOptions): EmbeddedWorker {
  const { dataDir, program, workerToken, log, env, onDeath, heartbeats } = options;
  const up = Promise.withResolvers<void>();
  // Tests and tools start an app without awaiting it.
  up.promise.catch(() => undefined);
  const pidFile = join(dataDir, "worker.pid");
  const logFile = join(dataDir, "worker.log");
  /** Shows in the command line whose worker it is, for the gateway that finds it by its pid. */
  const mark = `--data-dir=${dataDir}`;
  const silence = createSilence(heartbeats, options.leaseMs);

  /** Finds the worker of the gateway before. A pid alone proves nothing: it may long be another process's. */
  async function findSurvivor(): Promise<number | undefined> {
    const pid = Number.parseInt(await readFile(pidFile, "utf8").catch(() => ""), 10);
    // No file: there was none, or it was ended in order.
    if (!Number.isInteger(pid)) return undefined;
    silence.begin(options.leaseMs);
    const line = isAlive(pid) ? await commandLine(pid) : "";
    if (line.includes(program) && line.endsWith(mark)) return pid;
    await rm(pidFile, { force: true });
    await onDeath();
    return undefined;
  }

  async function launch(): Promise<number> {
    const output = await openLog(logFile);
    const { pid } = spawnWorker(output);
    await output.close();
    if (pid === undefined) throw new Error(`${program} could not be run`);
    silence.begin(comingUpMs);
    await writeFile(pidFile, `${pid}\n`);
    return pid;
  }

  function spawnWorker(output: FileHandle): ChildProcess {
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => passedOn.test(name)));
    const child = spawn(process.execPath, [program, mark], {
      env: {
        ...own,
        DATA_DIR: dataDir,
        CONTROL: controlSocket(dataDir),
        WORKER_LISTEN: workerSocket(dataDir),
        WORKER_ADDRESS: workerSocket(dataDir),
        WORKER_TOKEN: workerToken,
      },
      // A group of its own: Ctrl-C reaches the gateway alone, and a killed gateway does not take the worker along.
      detached: true,
      // A file and not a pipe: the worker may outlive who reads it.
      stdio: ["ignore", output.fd, output.fd],
    });
    child.once("exit", (status) => void refuse(status ?? 0));
    child.once("error", (error) => log.error({ err: error }, "the worker could not be run"));
    child.unref();
    return child;
  }

  /** Gives up a worker that has never come up and that ends with a failure: the next one would, too. */
  async function refuse(status: number): Promise<void> {
    if (status === 0 || heartbeats() > 0) return;
    supervisor.leave();
    const message = await lastWords(logFile).catch(() => "");
    log.error({ log: logFile }, "the worker cannot run here and is not started again");
    up.reject(new StartRefused(message || `the worker cannot run here: ${logFile} has the reason`));
  }

  const isStuck = () => {
    if (heartbeats() > 0) up.resolve();
    return silence.isTooLong();
  };
  const supervisor = createSupervisor({ name: "the worker", logFile, findSurvivor, launch, endingSteps, isStuck }, log);
  return {
    get pid() {
      return supervisor.pid;
    },
    up: up.promise,
    start: supervisor.start,
    async stop() {
      up.resolve();
      await supervisor.stop();
      await rm(pidFile, { force: true });
    },
  };
}
