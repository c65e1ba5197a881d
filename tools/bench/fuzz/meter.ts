import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** CPU milliseconds of the main thread of a Node process, which runs its event loop (proc(5), schedstat). */
const loopMs = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;

const idleMs = 5_000;

/** Measures how long the event loop of a process is held, less what it does by itself. */
export class Meter {
  readonly #pid: number;
  readonly #idle: number;

  private constructor(pid: number, idle: number) {
    this.#pid = pid;
    this.#idle = idle;
  }

  /** Watches what the process does by itself, and makes its meter. */
  static async start(pid: number): Promise<Meter> {
    const before = loopMs(pid);
    await delay(idleMs);
    return new Meter(pid, (loopMs(pid) - before) / idleMs);
  }

  /** CPU milliseconds of the event loop during some work. */
  async during(work: () => Promise<unknown>): Promise<number> {
    const [cpu, wall] = [loopMs(this.#pid), performance.now()];
    await work();
    return Math.max(0, loopMs(this.#pid) - cpu - this.#idle * (performance.now() - wall));
  }
}
