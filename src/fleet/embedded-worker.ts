import { type ChildProcess, spawn } from "node:child_process";
import { type FileHandle, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../platform/log.ts";
import { commandLine, type EndingStep, endProcess, isAlive } from "../platform/process-control.ts";

/** Milliseconds. */
const times = { watch: 250, firstBackoff: 100, longestBackoff: 10_000, steady: 30_000 };

/** The worker ends its sessions first; then it and whatever it started are killed as a group. */
const endingSteps: readonly EndingStep[] = [
  { signal: "SIGTERM", patience: 10_000 },
  { signal: "SIGKILL", patience: 2_000, group: true },
];

/** Above this many bytes the worker's log begins anew when it is started. */
const longestLog = 10 * 2 ** 20;

/** A worker runs hostile pages: of our environment it gets what is named here, and so no credentials. */
const passedOn =
  /^(PATH|HOME|USER|LANG|LC_.*|TZ|TMPDIR|XDG_.*|NODE_EXTRA_CA_CERTS|OTEL_.*|LOG_LEVEL|CHROMIUM_PATH|HEADLESS_SHELL_PATH|PLAYWRIGHT_BROWSERS_PATH|WORKER_SLOTS|WARM_BROWSERS|CLOSE_AT_.*|SCRATCH_DIR|EGRESS_ALLOW|ISOLATION)$/;

/** The one worker of embedded mode. */
export interface EmbeddedWorker {
  /** Goes on with a worker that outlived its gateway, else starts one; starts it again whenever it dies. */
  start(): Promise<void>;
  /** Ends the worker with all that it runs. */
  stop(): Promise<void>;
  /** Its process, while there is one. */
  readonly pid: number | undefined;
}

/** What the supervisor needs to know. */
export interface EmbeddedWorkerOptions {
  readonly dataDir: string;
  /** Path of the program, such as `workers/main.ts`. */
  readonly program: string;
  readonly workerToken: string;
  readonly log: Log;
  /** Called when the worker has died by itself, also while no gateway looked, before it is started again. */
  readonly onDeath: () => void | Promise<void>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Address of the gateway's socket for the embedded worker. */
export const gatewaySocket = (dataDir: string): string => `unix:${join(dataDir, "fleet.sock")}`;

/** Address of the embedded worker's socket. */
const workerSocket = (dataDir: string): string => `unix:${join(dataDir, "worker.sock")}`;

class Supervisor implements EmbeddedWorker {
  readonly #options: EmbeddedWorkerOptions;
  readonly #pidFile: string;
  /** Shows in the command line whose worker it is, for the gateway that finds it by its pid. */
  readonly #mark: string;
  #pid: number | undefined;
  #watch: NodeJS.Timeout | undefined;
  #restart: NodeJS.Timeout | undefined;
  #startedAt = 0;
  #backoff = times.firstBackoff;
  #stopped = false;
  #starting: Promise<void> | undefined;

  constructor(options: EmbeddedWorkerOptions) {
    this.#options = options;
    this.#pidFile = join(options.dataDir, "worker.pid");
    this.#mark = `--data-dir=${options.dataDir}`;
  }

  get pid(): number | undefined {
    return this.#pid;
  }

  start(): Promise<void> {
    this.#starting ??= this.#findOrLaunch();
    return this.#starting;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#starting?.catch(() => undefined);
    clearInterval(this.#watch);
    clearTimeout(this.#restart);
    const pid = this.#pid;
    this.#pid = undefined;
    if (pid === undefined) return;
    if (!(await endProcess(pid, endingSteps))) this.#options.log.error({ pid }, "the worker did not end");
    await rm(this.#pidFile, { force: true });
  }

  async #findOrLaunch(): Promise<void> {
    const survivor = await this.#survivor();
    if (survivor === undefined) await this.#launch();
    else {
      this.#options.log.info({ pid: survivor }, "the worker was still running and is used on");
      this.#pid = survivor;
    }
    if (!this.#stopped) this.#watch = setInterval(() => this.#look(), times.watch);
  }

  /** Finds the worker of the gateway before. A pid alone proves nothing: it may long be another process's. */
  async #survivor(): Promise<number | undefined> {
    const pid = Number.parseInt(await readFile(this.#pidFile, "utf8").catch(() => ""), 10);
    // No file: there was none, or it was ended in order.
    if (!Number.isInteger(pid)) return undefined;
    const line = isAlive(pid) ? await commandLine(pid) : "";
    if (line.includes(this.#options.program) && line.endsWith(this.#mark)) return pid;
    await this.#options.onDeath();
    return undefined;
  }

  async #launch(): Promise<void> {
    const log = await this.#openLog();
    const child = this.#spawn(log);
    await log.close();
    const { pid } = child;
    if (pid === undefined) throw new Error(`${this.#options.program} could not be run`);
    this.#pid = pid;
    this.#startedAt = performance.now();
    await writeFile(this.#pidFile, `${pid}\n`);
  }

  #spawn(log: FileHandle): ChildProcess {
    const { dataDir, program, workerToken, env } = this.#options;
    const own = Object.fromEntries(Object.entries(env).filter(([name]) => passedOn.test(name)));
    const child = spawn(process.execPath, [program, this.#mark], {
      env: {
        ...own,
        DATA_DIR: dataDir,
        GATEWAYS: gatewaySocket(dataDir),
        WORKER_LISTEN: workerSocket(dataDir),
        WORKER_ADDRESS: workerSocket(dataDir),
        WORKER_TOKEN: workerToken,
        // Name lookups of all sessions share these threads, and a silent name server holds one for seconds.
        UV_THREADPOOL_SIZE: "64",
      },
      // A group of its own: Ctrl-C reaches the gateway alone, and a killed gateway does not take the worker along.
      detached: true,
      // A file and not a pipe: the worker may outlive who reads it.
      stdio: ["ignore", log.fd, log.fd],
    });
    child.once("error", (error) => this.#options.log.error({ err: error }, "the worker could not be run"));
    child.unref();
    return child;
  }

  async #openLog(): Promise<FileHandle> {
    const path = join(this.#options.dataDir, "worker.log");
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    return open(path, size > longestLog ? "w" : "a", 0o600);
  }

  /** Starts the worker again when it has died: at once the first time, ever later when it dies soon after. */
  #look(): void {
    const pid = this.#pid;
    if (this.#stopped || pid === undefined || isAlive(pid)) return;
    this.#pid = undefined;
    if (performance.now() - this.#startedAt > times.steady) this.#backoff = times.firstBackoff;
    this.#options.log.error(
      { pid, log: join(this.#options.dataDir, "worker.log") },
      "the worker died and is started again",
    );
    void this.#options.onDeath();
    this.#restart = setTimeout(() => this.#launchAgain(), this.#backoff);
    this.#backoff = Math.min(this.#backoff * 2, times.longestBackoff);
  }

  #launchAgain(): void {
    if (this.#stopped) return;
    this.#starting = this.#launch().catch((error: unknown) => {
      this.#options.log.error({ err: error }, "the worker could not be started again");
      this.#restart = setTimeout(() => this.#launchAgain(), this.#backoff);
    });
  }
}

/** Makes the supervisor; nothing is started yet. */
export function createEmbeddedWorker(options: EmbeddedWorkerOptions): EmbeddedWorker {
  return new Supervisor(options);
}
