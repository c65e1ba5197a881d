import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../platform/log.ts";
import { commandLine, type EndingStep, isAlive } from "../platform/process-control.ts";
import { createSilence } from "../platform/silence.ts";
import { StartRefused } from "../platform/start-refused.ts";
import { createSupervisor } from "../platform/supervisor.ts";

/** Milliseconds until the first heartbeat is due. The worker first tests browsers and creates isolation slots. */
const startupMs = 60_000;

/** SIGTERM lets the worker end its sessions. SIGKILL then ends its whole process group. */
const endingSteps: readonly EndingStep[] = [
  { signal: "SIGTERM", timeoutMs: 10_000 },
  { signal: "SIGKILL", timeoutMs: 2_000, group: true },
];

/** Maximum log size in bytes. A larger log is truncated when the worker starts. */
const longestLog = 10 * 2 ** 20;

/** Environment variables passed to the worker. Credentials are excluded, because the worker runs hostile web pages. */
const passedVariables =
  /^(PATH|HOME|USER|LANG|LC_.*|TZ|TMPDIR|XDG_.*|NODE_EXTRA_CA_CERTS|NODE_COMPILE_CACHE|LOG_LEVEL|CHROMIUM_PATH|HEADLESS_SHELL_PATH|PLAYWRIGHT_BROWSERS_PATH|WORKER_SLOTS|WARM_BROWSERS|CLOSE_AT_.*|SCRATCH_DIR|EGRESS_ALLOW|BLOCK_LISTS|ISOLATION|BROWSER_SANDBOX|LIVEKIT_URL)$/;

/** Supervises the only worker of embedded mode. */
export interface EmbeddedWorker {
  /** Adopts a surviving worker or starts one. Replaces a worker that dies or stops sending heartbeats. */
  start(): Promise<void>;
  /** Stops the worker and its sessions. */
  stop(): Promise<void>;
  /**
   * Resolves at the first heartbeat or when stopped. If the worker exits with a failure before its first heartbeat,
   * rejects and does not restart the worker.
   */
  readonly up: Promise<void>;
  /** Process id of the running worker. */
  readonly pid: number | undefined;
}

export interface EmbeddedWorkerOptions {
  readonly dataDir: string;
  /** Path of the program, such as `workers/main.ts`. */
  readonly program: string;
  readonly workerToken: string;
  readonly log: Log;
  /** Number of heartbeats received by this process. */
  readonly heartbeats: () => number;
  /** Milliseconds without a heartbeat after which the worker counts as dead: the duration of its lease. */
  readonly leaseMs: number;
  /** Called before the restart of a worker that exited unexpectedly, even if no control process was running then. */
  readonly onDeath: () => void | Promise<void>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Address of the control process's socket for the embedded worker. */
export const controlSocket = (dataDir: string): string => `unix:${join(dataDir, "fleet.sock")}`;

/** Address of the embedded worker's socket. */
const workerSocket = (dataDir: string): string => `unix:${join(dataDir, "worker.sock")}`;

/** Opens the worker's log. Truncates it if it is too long. */
async function openLog(path: string): Promise<FileHandle> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  return open(path, size > longestLog ? "w" : "a", 0o600);
}

/** Reads the plain-text lines at the end of the log. Earlier lines are JSON or printed by Node.js. */
async function readLastMessage(logFile: string): Promise<string> {
  const lines = (await readFile(logFile, "utf8")).trimEnd().split("\n");
  return lines.slice(lines.findLastIndex((line) => /^[{(]/.test(line)) + 1).join("\n");
}

/** Creates the supervisor without starting the worker. */
export function createEmbeddedWorker(options: EmbeddedWorkerOptions): EmbeddedWorker {
  const { dataDir, program, workerToken, log, env, onDeath, heartbeats } = options;
  const up = Promise.withResolvers<void>();
  // Prevents an unhandled rejection if `up` is not awaited.
  up.promise.catch(() => undefined);
  const pidFile = join(dataDir, "worker.pid");
  const logFile = join(dataDir, "worker.log");
  /** Identifies this data directory's worker in the command line of its process. */
  const mark = `--data-dir=${dataDir}`;
  const silence = createSilence(heartbeats, options.leaseMs);

  /** Finds the worker left by the previous control process. Also checks the command line, because pids are reused. */
  async function findSurvivor(): Promise<number | undefined> {
    const pid = Number.parseInt(await readFile(pidFile, "utf8").catch(() => ""), 10);
    // Without a file, no worker ran or it was stopped properly.
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
    if (pid === undefined) throw new Error(`failed to start ${program}`);
    silence.begin(startupMs);
    await writeFile(pidFile, `${pid}\n`);
    return pid;
  }

  function spawnWorker(output: FileHandle): ChildProcess {
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => passedVariables.test(name)));
    const child = spawn(process.execPath, [program, mark], {
      env: {
        ...own,
        DATA_DIR: dataDir,
        CONTROL: controlSocket(dataDir),
        WORKER_LISTEN: workerSocket(dataDir),
        WORKER_ADDRESS: workerSocket(dataDir),
        WORKER_TOKEN: workerToken,
      },
      // Uses a separate process group: neither Ctrl-C nor a killed control process ends the worker.
      detached: true,
      // Logs to a file, because the worker may outlive the reader of a pipe.
      stdio: ["ignore", output.fd, output.fd],
    });
    child.once("exit", (status) => void stopRestarting(status ?? 0));
    child.once("error", (error) => log.error({ err: error }, "failed to start worker"));
    child.unref();
    return child;
  }

  /** Stops restarting a worker that failed before its first heartbeat. */
  async function stopRestarting(status: number): Promise<void> {
    if (status === 0 || heartbeats() > 0) return;
    supervisor.leave();
    const message = await readLastMessage(logFile).catch(() => "");
    log.error({ log: logFile }, "failed to start worker; not retrying");
    up.reject(new StartRefused(message || `failed to start the worker; see ${logFile} for the reason`));
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
