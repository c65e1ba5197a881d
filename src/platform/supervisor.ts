import { sleep } from "./bounded-wait.ts";
import type { Log } from "./log.ts";
import { type EndingStep, endProcess, isAlive } from "./process-control.ts";

/** Milliseconds. */
const times = { watch: 250, firstBackoff: 100, longestBackoff: 10_000, steady: 30_000, kill: 2_000 };

/** A program of which one process is to run. */
export interface SupervisedProgram {
  /** As logs call it, such as "the worker". */
  readonly name: string;
  /** Where it writes its log. */
  readonly logFile?: string;
  /** Finds the process that runs already, if it can be used on: it outlives the gateway that started it. */
  findSurvivor(): Promise<number | undefined>;
  /** Starts a process and gives its pid; throws when it does not come up. */
  launch(): Promise<number>;
  /** How the process is ended in order. */
  readonly endingSteps: readonly EndingStep[];
  /** Says whether the process, although it is there, has stopped working: it is killed with its group and replaced. */
  isStuck?(): boolean;
}

/** Keeps one process running. */
export interface Supervisor {
  /** Goes on with a survivor or starts the process, and from then on replaces it for as long as it takes. */
  start(): Promise<void>;
  /** Ends the process. */
  stop(): Promise<void>;
  /** Stops looking after the process, and leaves it to another gateway. */
  leave(): void;
  /** The process, while there is one. */
  readonly pid: number | undefined;
}

/** Makes the supervisor of a program; nothing is started yet. */
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
    if (survivor !== undefined) log.info({ pid: survivor }, `${name} was still running and is used on`);
    pid = survivor ?? (await program.launch());
    startedAt = performance.now();
  }

  /** Says why the process has to be replaced; a stuck one is killed first. */
  async function findFault(watched: number): Promise<string | undefined> {
    if (!isAlive(watched)) return "died";
    if (program.isStuck?.() !== true) return undefined;
    await endProcess(watched, [{ signal: "SIGKILL", patience: times.kill, group: true }]);
    return "did not answer and was killed";
  }

  /** Starts the process again: soon the first time, ever later when it dies young or does not come up. */
  async function replace(): Promise<void> {
    if (performance.now() - startedAt > times.steady) backoff = times.firstBackoff;
    while (!stopping.signal.aborted) {
      await sleep(backoff, stopping.signal);
      backoff = Math.min(backoff * 2, times.longestBackoff);
      if (stopping.signal.aborted) return;
      try {
        return await begin();
      } catch (error) {
        log.error({ err: error, log: program.logFile, retry_in_ms: backoff }, `${name} could not be started again`);
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
      log.error({ pid: watched, log: program.logFile }, `${name} ${fault} and is started again`);
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
      if (!(await endProcess(running, program.endingSteps))) log.error({ pid: running }, `${name} did not end`);
    },
    leave: () => stopping.abort(),
  };
}
