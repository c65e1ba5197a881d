import { hostBusyMs, type ProcessTimes, readTree } from "./processes.ts";

/** Milliseconds between samples. A browser lives for some 500 ms; CPU time after its last sample counts as foreign. */
const pollMs = 250;

/** Estimates the foreign load of the machine: its total CPU time minus that of this process and its descendants. */
export class ForeignLoad {
  readonly #seen = new Map<string, ProcessTimes>();
  readonly #timer = setInterval(() => this.#check(), pollMs);
  readonly #beganAt = performance.now();
  readonly #busyBefore = hostBusyMs();
  readonly #ownBefore: number;

  constructor() {
    this.#check();
    this.#ownBefore = this.#own();
  }

  /** Stops and returns the average number of cores that other processes used. */
  stop(): number {
    clearInterval(this.#timer);
    this.#check();
    const own = this.#own() - this.#ownBefore;
    return Math.max(0, hostBusyMs() - this.#busyBefore - own) / (performance.now() - this.#beganAt);
  }

  #check(): void {
    for (const found of readTree(process.pid)) this.#seen.set(`${found.pid} ${found.startedAt}`, found);
  }

  #own(): number {
    return [...this.#seen.values()].reduce((sum, { ownMs }) => sum + ownMs, 0);
  }
}
