import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { makeDataDirectory } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { Footprint } from "../support/leftovers.ts";
import { descendantsOf, type ListedProcess, listProcesses } from "../support/process-list.ts";

const root = join(import.meta.dirname, "../..");

/** Milliseconds. Setting up included, which has nothing to do here. */
const startWithin = 60_000;
const endWithin = 45_000;

/** A home, a data directory and ports of a test's own. */
export interface Ground {
  readonly home: string;
  readonly dataDir: string;
  readonly env: Record<string, string | undefined>;
}

/** Makes the ground for a start, where this user's own data is out of reach. */
export async function makeGround(): Promise<Ground> {
  const home = await mkdtemp(join(tmpdir(), "start-"));
  await mkdir(join(home, "tmp"));
  const dataDir = await makeDataDirectory();
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

/** A command that starts the service, as long as it runs. */
export class StartedProject {
  readonly ground: Ground;
  readonly #child: ChildProcess;
  readonly #footprint: Footprint;
  readonly #exit: Promise<unknown>;
  #printed = "";

  /** Runs `npm start`, or another command in its place. */
  constructor(ground: Ground, command: readonly string[] = ["npm", "start"], env: Record<string, string> = {}) {
    this.ground = ground;
    this.#footprint = new Footprint(ground.dataDir, join(ground.home, "tmp"));
    const [program = "", ...parameters] = command;
    this.#child = spawn(program, parameters, {
      cwd: root,
      env: { ...ground.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own, as a terminal gives: Ctrl-C reaches all of it.
      detached: true,
    });
    this.#exit = once(this.#child, "close");
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (text: Buffer) => {
        this.#printed += text.toString();
      });
    }
  }

  /** What it has printed so far. */
  get printed(): string {
    return this.#printed;
  }

  /** The process of its worker, once there is one. */
  async workerPid(): Promise<number> {
    return Number.parseInt(await readFile(join(this.ground.dataDir, "worker.pid"), "utf8"), 10);
  }

  /** Everything that its worker has started. */
  async browserProcesses(): Promise<ListedProcess[]> {
    this.#footprint.look();
    const descendants = descendantsOf(await this.workerPid(), listProcesses());
    return descendants.filter(({ command }) => /chrom/.test(command));
  }

  /** Waits for the banner, and gives the lines that it says to paste. */
  async pasteLines(): Promise<string[]> {
    await this.until(() => this.#printed.includes("Ctrl-C ends it."));
    const [, after = ""] = this.#printed.split("paste this into another terminal:");
    const lines = after.split("\n").map((line) => line.trim());
    return lines.slice(0, lines.indexOf("Ctrl-C ends it.")).filter((line) => line !== "");
  }

  /** Waits for a condition; fails with what was printed when the command ends or takes too long. */
  async until(condition: () => boolean): Promise<void> {
    const isOver = (): boolean => this.#child.exitCode !== null || this.#child.signalCode !== null;
    await waitUntil(() => condition() || isOver(), { timeout: startWithin, every: 20 });
    this.#footprint.look();
    if (!condition()) throw new Error(`it did not start:\n${this.#printed}`);
  }

  /** Waits for a file of the data directory. */
  untilThere(path: string): Promise<void> {
    return this.until(() => existsSync(join(this.ground.dataDir, path)));
  }

  /** Sends a signal to the command and whatever it runs in the foreground, as a terminal does. */
  signal(signal: NodeJS.Signals): void {
    this.#footprint.look();
    process.kill(-(this.#child.pid ?? 0), signal);
  }

  /** Sends SIGTERM to the first process that the command has started, and to no other. */
  terminateFirst(): void {
    this.#footprint.look();
    const [first] = descendantsOf(this.#child.pid ?? 0, listProcesses()).filter(
      ({ parent }) => parent === this.#child.pid,
    );
    if (first) process.kill(first.pid, "SIGTERM");
  }

  /** Waits until the command has ended, and gives its exit code, or the signal that ended it. */
  async ended(): Promise<number | NodeJS.Signals | null> {
    await Promise.race([this.#exit, waitUntil(() => false, { timeout: endWithin, every: endWithin })]);
    return this.#child.exitCode ?? this.#child.signalCode;
  }

  /** Says what is left of the service. */
  leftovers(): string[] {
    return this.#footprint.leftovers();
  }

  /** Ends what is left, however the test has gone; the ground stays. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) this.signal("SIGTERM");
    const ended = waitUntil(() => this.#footprint.own.length === 0, { timeout: endWithin, every: 50 });
    if (!(await ended)) for (const { pid } of this.#footprint.own) process.kill(pid, "SIGKILL");
  }
}

/** Deletes a ground that nothing uses any more. */
export async function clearGround({ home, dataDir }: Ground): Promise<void> {
  for (const directory of [home, dataDir]) await rm(directory, { recursive: true, force: true });
}
