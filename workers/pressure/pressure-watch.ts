import type { Pressure } from "./pressure-reader.ts";
import { initialPressure, nextPressure, type PressureRule, type PressureState } from "./pressure-state.ts";

/** Name of a pressure that can close a worker. */
export type PressureKind = keyof Pressure;

/** All kinds of pressure, most severe first. */
const kinds: readonly PressureKind[] = ["memory", "memory_stall", "cpu"];

/** Milliseconds between readings. The memory of a session grows more slowly. */
const pollMs = 500;

/** Thresholds in percent at which the worker closes to new sessions. 100 means never. */
export interface CloseAt {
  readonly memory: number;
  readonly cpu: number;
}

/**
 * Returns the rule of each pressure. Memory pressure closes the worker immediately, before the OOM killer acts. The
 * worker opens again after one or two sessions have ended. A stall share of 0.2 is thrashing. CPU pressure only slows
 * sessions, so it closes the worker after 5 s, longer than the burst of a launch. At 0.95 there are 20 tasks per core,
 * at 0.8 five.
 */
function rulesOf({ memory, cpu }: CloseAt): Readonly<Record<PressureKind, PressureRule>> {
  const at = (percent: number) => (percent >= 100 ? Number.POSITIVE_INFINITY : percent / 100);
  const below = (percent: number, distance: number) => Math.max(percent - distance, percent / 2) / 100;
  return {
    memory: { closeAt: at(memory), openBelow: below(memory, 10), closeAfter: 0, openAfter: 3_000 },
    memory_stall: { closeAt: memory >= 100 ? at(100) : 0.2, openBelow: 0.05, closeAfter: 0, openAfter: 5_000 },
    cpu: { closeAt: at(cpu), openBelow: below(cpu, 15), closeAfter: 5_000, openAfter: 5_000 },
  };
}

export interface PressureWatchOptions {
  readonly closeAt: CloseAt;
  read(): Pressure;
  /** Called with the pressure that now closes the worker, or undefined when the worker opens. */
  onChange(closedBy: PressureKind | undefined, pressure: Pressure): void;
}

/** Watches the machine's pressure and decides when the worker must refuse new sessions. */
export class PressureWatch {
  readonly #options: PressureWatchOptions;
  readonly #rules: Readonly<Record<PressureKind, PressureRule>>;
  #states: Record<PressureKind, PressureState> = {
    memory: initialPressure,
    memory_stall: initialPressure,
    cpu: initialPressure,
  };
  #pressure: Pressure = { memory: 0, memory_stall: 0, cpu: 0 };
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PressureWatchOptions) {
    this.#options = options;
    this.#rules = rulesOf(options.closeAt);
  }

  /** Pressure at the last reading. */
  get pressure(): Pressure {
    return this.#pressure;
  }

  /** Most severe pressure that closes the worker, if any. */
  get closedBy(): PressureKind | undefined {
    return kinds.find((kind) => this.#states[kind].isClosed);
  }

  /** Reads the pressure now and starts periodic readings. */
  start(): void {
    this.measure();
    this.#timer ??= setInterval(() => this.measure(), pollMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Reads the pressure once, and calls `onChange` if another pressure or none closes the worker now. */
  measure(now = performance.now()): void {
    const before = this.closedBy;
    const pressure = this.#options.read();
    this.#pressure = pressure;
    for (const kind of kinds) {
      this.#states[kind] = nextPressure(this.#states[kind], this.#rules[kind], pressure[kind], now);
    }
    const after = this.closedBy;
    if (after !== before) this.#options.onChange(after, pressure);
  }
}
