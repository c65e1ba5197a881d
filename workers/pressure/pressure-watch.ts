import { type GateRule, type GateState, moveGate, openGate } from "./pressure-gate.ts";
import type { Pressure } from "./pressure-reader.ts";

/** What can close a worker. */
export type PressureKind = keyof Pressure;

/** The worst first. */
const kinds: readonly PressureKind[] = ["memory", "memory_stall", "cpu"];

/** Milliseconds between looks: a session takes longer to become large. */
const lookMs = 500;

/** Percent from which the worker is closed; 100 never. */
export interface CloseAt {
  readonly memory: number;
  readonly cpu: number;
}

/**
 * Memory closes at once, since what comes next is the kernel's killer, and opens when a session or two have gone. A
 * fifth of the time stalled for memory is thrashing. Cores are only slow, and a launch's burst must not close a worker:
 * at 0.95 there are 20 tasks for each, at 0.8 five.
 */
function rulesOf({ memory, cpu }: CloseAt): Readonly<Record<PressureKind, GateRule>> {
  const at = (percent: number) => (percent >= 100 ? Number.POSITIVE_INFINITY : percent / 100);
  return {
    memory: { closeAt: at(memory), openBelow: memory / 100 - 0.1, closeAfter: 0, openAfter: 3_000 },
    memory_stall: { closeAt: memory >= 100 ? at(100) : 0.2, openBelow: 0.05, closeAfter: 0, openAfter: 5_000 },
    cpu: { closeAt: at(cpu), openBelow: cpu / 100 - 0.15, closeAfter: 5_000, openAfter: 5_000 },
  };
}

export interface PressureWatchOptions {
  readonly closeAt: CloseAt;
  /** Reads the pressure. */
  read(): Pressure;
  /** Hears what closes the worker from now on; undefined: nothing does. */
  onChange(closedBy: PressureKind | undefined, pressure: Pressure): void;
}

/** Watches the pressure on the machine, and says when the worker should take no new sessions. */
export class PressureWatch {
  readonly #options: PressureWatchOptions;
  readonly #rules: Readonly<Record<PressureKind, GateRule>>;
  #gates: Record<PressureKind, GateState> = { memory: openGate, memory_stall: openGate, cpu: openGate };
  #pressure: Pressure = { memory: 0, memory_stall: 0, cpu: 0 };
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PressureWatchOptions) {
    this.#options = options;
    this.#rules = rulesOf(options.closeAt);
  }

  /** The pressure at the last look. */
  get pressure(): Pressure {
    return this.#pressure;
  }

  /** What closes the worker, the worst first. */
  get closedBy(): PressureKind | undefined {
    return kinds.find((kind) => this.#gates[kind].isClosed);
  }

  /** Looks for the first time, and from then on. */
  start(): void {
    this.look();
    this.#timer ??= setInterval(() => this.look(), lookMs);
  }

  /** Looks no more. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Looks once. */
  look(now = performance.now()): void {
    const before = this.closedBy;
    const pressure = this.#options.read();
    this.#pressure = pressure;
    for (const kind of kinds) {
      this.#gates[kind] = moveGate(this.#gates[kind], this.#rules[kind], pressure[kind], now);
    }
    const after = this.closedBy;
    if (after !== before) this.#options.onChange(after, pressure);
  }
}
