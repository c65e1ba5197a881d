import { hostBusyMs, type ProcessTimes, readTree } from "./processes.ts";

/** A browser lives for some 500 ms; what it does after the last look is taken for foreign. */
const lookMs = 250;

/** Reckons how busy the machine was with what is not ours: its whole CPU time less that of our own processes. */
export class ForeignLoad {
  readonly #seen = new Map<string, ProcessTimes>();
  readonly #timer = setInterval(() => this.#look(), lookMs);
  readonly #beganAt = performance.now();
  readonly #busyBefore = hostBusyMs();
  readonly #ownBefore: number;

  constructor() {
    this.#look();
    this.#ownBefore = this.#own();
  }

  /** Ends the count; gives the cores that others used, on average. */
  stop(): number {
    clearInterval(this.#timer);
    this.#look();
    const own = this.#own() - this.#ownBefore;
    return Math.max(0, hostBusyMs() - this.#busyBefore - own) / (performance.now() - this.#beganAt);
  }

  #look(): void {
    for (const found of readTree(process.pid)) this.#seen.set(`${found.pid} ${found.startedAt}`, found);
  }

  #own(): number {
    return [...this.#seen.values()].reduce((sum, { ownMs }) => sum + ownMs, 0);
  }
}
