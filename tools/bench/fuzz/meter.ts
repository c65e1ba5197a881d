import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** Returns the CPU milliseconds of a Node process's main thread, which runs the event loop (proc(5), schedstat). */
const loopMs = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;

const idleMs = 5_000;

/** Measures the event loop time of a process, minus that of its idle activity. */
export class Meter {
  readonly #pid: number;
  readonly #idle: number;

  private constructor(pid: number, idle: number) {
    this.#pid = pid;
    this.#idle = idle;
  }

  /** Measures the idle activity of a process, and creates its meter. */
  static async start(pid: number): Promise<Meter> {
    const before = loopMs(pid);
    await delay(idleMs);
    return new Meter(pid, (loopMs(pid) - before) / idleMs);
  }

  /** Returns the CPU milliseconds of the event loop during an operation. */
  async during(work: () => Promise<unknown>): Promise<number> {
    const [cpu, wall] = [loopMs(this.#pid), performance.now()];
    await work();
    return Math.max(0, loopMs(this.#pid) - cpu - this.#idle * (performance.now() - wall));
  }
}
