import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { makeClusterDirectory, makeDataDirectory } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { Footprint } from "../support/leftovers.ts";
import { descendantsOf, type ListedProcess, listProcesses } from "../support/process-list.ts";

const root = join(import.meta.dirname, "../..");

/** Milliseconds, including the setup, which has no work to do here. */
const startWithin = 60_000;
const endWithin = 45_000;

/** Home, data directory and ports of one test. */
export interface Ground {
  readonly home: string;
  readonly dataDir: string;
  readonly env: Record<string, string | undefined>;
}

/**
 * Creates the directories and ports for a start, isolated from the current user's data. `hasCluster` saves PostgreSQL
 * the creation of its cluster.
 */
export async function makeGround(hasCluster = false): Promise<Ground> {
  const home = await mkdtemp(join(tmpdir(), "start-"));
  await mkdir(join(home, "tmp"));
  const dataDir = await (hasCluster ? makeClusterDirectory() : makeDataDirectory());
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const own = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const env = {
    ...process.env,
    HOME: home,
    TMPDIR: join(home, "tmp"),
    DATA_DIR: dataDir,
    WORKER_SLOTS: "2",
    ...own,
  };
  return { home, dataDir, env };
}

/** Running command that starts the service. */
export class StartedProject {
  readonly ground: Ground;
  readonly #child: ChildProcess;
  readonly #footprint: Footprint;
  readonly #exit: Promise<unknown>;
  #printed = "";

  /** Runs `npm start` or another command. */
  constructor(ground: Ground, command: readonly string[] = ["npm", "start"], env: Record<string, string> = {}) {
    this.ground = ground;
    this.#footprint = new Footprint(ground.dataDir, join(ground.home, "tmp"));
    const [program = "", ...parameters] = command;
    this.#child = spawn(program, parameters, {
      cwd: root,
      env: { ...ground.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // Own process group, as in a terminal, so that Ctrl-C reaches all of its processes.
      detached: true,
    });
    this.#exit = once(this.#child, "close");
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (text: Buffer) => {
        this.#printed += text.toString();
      });
    }
  }

  /** Output so far. */
  get printed(): string {
    return this.#printed;
  }

  /** Returns the pid of the worker, which must have started. */
  async workerPid(): Promise<number> {
    return Number.parseInt(await readFile(join(this.ground.dataDir, "worker.pid"), "utf8"), 10);
  }

  /** Returns all descendants of the worker. */
  async browserProcesses(): Promise<ListedProcess[]> {
    this.#footprint.look();
    const descendants = descendantsOf(await this.workerPid(), listProcesses());
    return descendants.filter(({ command }) => /chrom/.test(command));
  }

  /** Waits for the banner and returns the lines to paste. */
  async pasteLines(): Promise<string[]> {
    await this.until(() => this.#printed.includes("Ctrl-C ends it."));
    const [, after = ""] = this.#printed.split("paste this into another terminal:");
    const lines = after.split("\n").map((line) => line.trim());
    return lines.slice(0, lines.indexOf("Ctrl-C ends it.")).filter((line) => line !== "");
  }

  /** Waits for a condition. Fails with the output if the command ends or takes too long. */
  async until(condition: () => boolean): Promise<void> {
    const isOver = (): boolean => this.#child.exitCode !== null || this.#child.signalCode !== null;
    await waitUntil(() => condition() || isOver(), { timeout: startWithin, every: 20 });
    this.#footprint.look();
    if (!condition()) throw new Error(`it did not start:\n${this.#printed}`);
  }

  /** Waits for a file in the data directory. */
  untilThere(path: string): Promise<void> {
    return this.until(() => existsSync(join(this.ground.dataDir, path)));
  }

  /** Sends a signal to the command's process group, as a terminal does. */
  signal(signal: NodeJS.Signals): void {
    this.#footprint.look();
    process.kill(-(this.#child.pid ?? 0), signal);
  }

  /** Sends SIGTERM only to the first process that the command has started. */
  terminateFirst(): void {
    this.#footprint.look();
    const [first] = descendantsOf(this.#child.pid ?? 0, listProcesses()).filter(
      ({ parent }) => parent === this.#child.pid,
    );
    if (first) process.kill(first.pid, "SIGTERM");
  }

  /** Waits until the command ends. Returns its exit code, or the signal that ended it. */
  async ended(): Promise<number | NodeJS.Signals | null> {
    await Promise.race([this.#exit, waitUntil(() => false, { timeout: endWithin, every: endWithin })]);
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  /** Lists the remains of the service. */
  leftovers(): string[] {
    return this.#footprint.leftovers();
  }

  /** Ends all remaining processes after a passed or failed test. The directories are kept. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.signal("SIGTERM");
    const ended = waitUntil(() => this.#footprint.own.length === 0, { timeout: endWithin, every: 50 });
    if (!(await ended)) for (const { pid } of this.#footprint.own) process.kill(pid, "SIGKILL");
  }
}

/** Deletes the directories of a start that are no longer used. */
export async function clearGround({ home, dataDir }: Ground): Promise<void> {
  for (const directory of [home, dataDir]) await rm(directory, { recursive: true, force: true });
}
