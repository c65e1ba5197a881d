import { sleep } from "./bounded-wait.ts";
import type { Log } from "./log.ts";
import { type EndingStep, endProcess, isAlive } from "./process-control.ts";

/**
 * Milliseconds. `watch`: between checks of the process. `firstBackoff` and `longestBackoff`: before restarts. `steady`:
 * run time after which the backoff starts again at `firstBackoff`. `kill`: wait after SIGKILL.
 */
const times = { watch: 250, firstBackoff: 100, longestBackoff: 10_000, steady: 30_000, kill: 2_000 };

/** A program that a supervisor keeps running in one process. */
export interface SupervisedProgram {
  /** Name in logs, such as "the worker". */
  readonly name: string;
  readonly logFile?: string;
  /** Finds a usable process started by an earlier gateway. */
  findSurvivor(): Promise<number | undefined>;
  /** Starts a process and returns its pid. Rejects if the process fails to start. */
  launch(): Promise<number>;
  readonly endingSteps: readonly EndingStep[];
  /** Returns whether the running process hangs. A hanging process is killed with its group and replaced. */
  isStuck?(): boolean;
}

/** Keeps one process running. */
export interface Supervisor {
  /** Adopts a running process or starts one, and replaces a process that fails. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Stops supervising the process, and leaves it to another gateway. */
  leave(): void;
  /** Process id, if running. */
  readonly pid: number | undefined;
}

/** Creates the supervisor of a program without starting it. */
export function createSupervisor(program: SupervisedProgram, log: Log): Supervisor {
  const { name } = program;
  const stopping = new AbortController();
  let pid: number | undefined;
  let starting: Promise<void> | undefined;
  let watching: Promise<void> | undefined;
  let startedAt = 0;
  let backoff = times.firstBackoff;

  async function begin(): Promise<void> {
    const survivor = await program.findSurvivor();
    if (survivor !== undefined) log.info({ pid: survivor }, `${name} is still running and was adopted`);
    pid = survivor ?? (await program.launch());
    startedAt = performance.now();
  }

  /** Returns why the process must be replaced. Kills a hanging process. */
  async function findFault(watched: number): Promise<string | undefined> {
    if (!isAlive(watched)) return "died";
    if (program.isStuck?.() !== true) return undefined;
    await endProcess(watched, [{ signal: "SIGKILL", timeoutMs: times.kill, group: true }]);
    return "did not respond and was killed";
  }

  /** Restarts the process, with exponential backoff if the process fails early. */
  async function replace(): Promise<void> {
    if (performance.now() - startedAt > times.steady) backoff = times.firstBackoff;
    while (!stopping.signal.aborted) {
      await sleep(backoff, stopping.signal);
      backoff = Math.min(backoff * 2, times.longestBackoff);
      if (stopping.signal.aborted) return;
      try {
        return await begin();
      } catch (error) {
        log.error({ err: error, log: program.logFile, retry_in_ms: backoff }, `failed to restart ${name}`);
      }
    }
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(times.watch, stopping.signal);
      const watched = pid;
      const fault = watched === undefined || stopping.signal.aborted ? undefined : await findFault(watched);
      if (fault === undefined) continue;
      pid = undefined;
      log.error({ pid: watched, log: program.logFile }, `${name} ${fault}; restarting`);
      await replace();
    }
  }

  return {
    get pid() {
      return pid;
    },
    start() {
      starting ??= begin().then(() => {
        watching = watch();
      });
      return starting;
    },
    async stop() {
      stopping.abort();
      await starting?.catch(() => undefined);
      await watching;
      const running = pid;
      pid = undefined;
      if (running === undefined) return;
      if (!(await endProcess(running, program.endingSteps))) log.error({ pid: running }, `failed to end ${name}`);
    },
    leave: () => stopping.abort(),
  };
}
