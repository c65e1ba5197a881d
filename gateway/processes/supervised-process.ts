import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { unlessLate } from "../../src/platform/deadline.ts";
import type { Log } from "../../src/platform/log.ts";
import {
  type BeginMessage,
  type BusEnvelope,
  createBusSender,
  type FromProcess,
  type ProcessReady,
  type ProcessRequest,
  type ToProcess,
} from "../../src/platform/process-channel.ts";
import { type EndingStep, endProcess } from "../../src/platform/process-control.ts";
import { createSilence } from "../../src/platform/silence.ts";
import { createSupervisor } from "../../src/platform/supervisor.ts";

/** Time limits, in milliseconds. */
const times = {
  /** Until a process is ready, migrations included. */
  start: 120_000,
  /** From a request of `ask` to its response. */
  answer: 2_000,
  /** From SIGTERM to SIGKILL of a process that is not yet ready. */
  endUnready: 15_000,
  /** From SIGKILL until the process must have exited. */
  kill: 2_000,
};

/** One of this many checks by `createSupervisor` sends a liveness request. There are four checks per second. */
const checksPerRequest = 4;

const program = join(import.meta.dirname, "..", "main.ts");

/** Thrown if a process exits before it is ready. The process has printed the reason. */
export class EndedAtStart extends Error {
  override readonly name = "EndedAtStart";
}

/** Options of a supervised process. */
export interface SupervisedProcessOptions {
  readonly name: "control" | "gateway";
  /** Command-line options of Node. */
  readonly nodeOptions: readonly string[];
  /** Milliseconds without a response after which the process is killed and restarted. */
  readonly timeout: number;
  /** Milliseconds from SIGTERM to SIGKILL. */
  readonly grace: number;
  readonly log: Log;
  /** Resolves with the initial data of the process when the process may start. */
  readonly begin: () => Promise<BeginMessage>;
  readonly onReady: (readiness: ProcessReady) => void;
  /** Called with each bus message that the process sends to the other processes. */
  readonly onPost: (post: BusEnvelope) => void;
}

/** A child process that is restarted when it exits or stops responding. */
export interface SupervisedProcess {
  /**
   * Resolves when the process is ready. Rejects with EndedAtStart if the process exits first, or with another error if
   * the process is not ready within 120 s.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  post(post: BusEnvelope): void;
  /** Sends a request. Resolves with undefined if the process is not running or does not respond within 2 s. */
  ask(request: ProcessRequest): Promise<string | undefined>;
}

/** One run of the process. */
interface Run {
  readonly child: ChildProcess;
  readonly post: (post: BusEnvelope) => void;
  readonly requests: Map<number, (text: string) => void>;
}

export function createSupervisedProcess(options: SupervisedProcessOptions): SupervisedProcess {
  const { name, log, begin, onReady, onPost } = options;
  let run: Run | undefined;
  let starting: ChildProcess | undefined;
  let lastId = 0;
  let checks = 0;
  let responses = 0;
  const silence = createSilence(() => responses, options.timeout);

  function receive({ requests }: Run, message: FromProcess): void {
    if (message.kind === "bus") onPost(message);
    else if (message.kind === "answer") {
      requests.get(message.id)?.(message.text);
      requests.delete(message.id);
    }
  }

  /** Starts the process, which loads its program while PostgreSQL starts. Resolves with its pid when it is ready. */
  async function launch(): Promise<number> {
    // The process has its own process group, so that Ctrl-C in a terminal reaches only the supervisor.
    const stdio = ["ignore", "inherit", "inherit", "ipc"] as const;
    const child = fork(program, [name], { detached: true, execArgv: [...options.nodeOptions], stdio: [...stdio] });
    starting = child;
    const started: Run = {
      child,
      post: createBusSender((message, done) => child.send(message, done)),
      requests: new Map(),
    };
    run = started;
    child.on("message", (message: FromProcess) => receive(started, message));
    child.on("error", (error) => log.error({ err: error }, `failed to run ${name}`));
    const ready = new Promise<ProcessReady>((resolve, reject) => {
      child.on("message", (message: FromProcess) => message.kind === "ready" && resolve(message));
      child.once("exit", () => reject(new EndedAtStart(`${name} ended before it was ready`)));
    });
    ready.catch(() => undefined);
    try {
      send(child, await Promise.race([begin(), ready.then(() => begin())]));
      onReady(await unlessLate(ready, times.start, refuseLate));
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    } finally {
      starting = undefined;
    }
    silence.begin(options.timeout);
    return child.pid ?? 0;
  }

  function refuseLate(): never {
    throw new Error(`${name} was not ready within ${times.start} ms`);
  }

  function send(child: ChildProcess, message: ToProcess): void {
    // An exited process is restarted, so errors of the channel are ignored.
    child.send(message, () => undefined);
  }

  async function ask(request: ProcessRequest): Promise<string | undefined> {
    const target = run;
    if (!target?.child.connected) return undefined;
    lastId += 1;
    const id = lastId;
    const answer = new Promise<string>((resolve) => target.requests.set(id, resolve));
    send(target.child, { kind: "ask", id, question: request });
    return unlessLate(answer, times.answer, () => {
      target.requests.delete(id);
      return undefined;
    });
  }

  function isStuck(): boolean {
    checks += 1;
    if (checks % checksPerRequest === 0) {
      void ask("alive").then((answer) => {
        if (answer !== undefined) responses += 1;
      });
    }
    return silence.isTooLong();
  }

  const kill: EndingStep = { signal: "SIGKILL", timeoutMs: times.kill };
  const endingSteps: readonly EndingStep[] = [{ signal: "SIGTERM", timeoutMs: options.grace }, kill];
  const findSurvivor = async (): Promise<undefined> => undefined;
  const supervisor = createSupervisor({ name, findSurvivor, launch, endingSteps, isStuck }, log);
  return {
    start: supervisor.start,
    async stop() {
      supervisor.leave();
      if (starting?.pid !== undefined)
        await endProcess(starting.pid, [{ signal: "SIGTERM", timeoutMs: times.endUnready }, kill]);
      await supervisor.stop();
    },
    post: (post) => run?.post(post),
    ask,
  };
}
