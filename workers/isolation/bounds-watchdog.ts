import { DiskWatch, type MeasuredDirectories } from "./disk-watch.ts";
import { readLaunchRecord } from "./launch-record.ts";
import type { SessionBounds } from "./session-bounds.ts";
import type { Slot } from "./slot.ts";
import { exactMemory, type Occupant, SlotCensus, type SlotUsage } from "./slot-census.ts";

/** Milliseconds between checks. Checking 16 sessions costs 0.6 % of a core. */
const checkMs = 1_500;
/** Milliseconds between checks above half of the memory bound. */
const alertMs = 200;

/** Milliseconds between exact memory readings of a session. A reading occupies another core for up to 200 ms. */
const weighMs = 500;

const mib = 2 ** 20;

/** Resources that are bounded per session. */
export type BoundName = "memory" | "tasks" | "disk";

export interface BoundsWatchdogOptions {
  readonly bounds: SessionBounds;
  /** Called for each session that exceeds a bound. */
  onOver?(bound: BoundName): void;
}

interface Attended extends Occupant, MeasuredDirectories {
  readonly slot: Slot;
  leader: number | undefined;
  weighedAt: number;
  end(detail: string): void;
}

/** Ends sessions that exceed their resource bounds. One timer checks all sessions. */
export class BoundsWatchdog {
  readonly #options: BoundsWatchdogOptions;
  readonly #census = new SlotCensus();
  readonly #diskWatch: DiskWatch;
  readonly #attended = new Set<Attended>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: BoundsWatchdogOptions) {
    this.#options = options;
    this.#diskWatch = new DiskWatch(options.bounds.diskBytes);
  }

  /** Checks a session's slot until its processes are killed. `end` is called once, with the bound that was exceeded. */
  attend(slot: Slot, end: (detail: string) => void): void {
    const attended: Attended = {
      slot,
      uid: slot.uid,
      leader: undefined,
      weighedAt: Number.NEGATIVE_INFINITY,
      directories: [slot.directory, slot.storage],
      measuredAt: undefined,
      end,
    };
    this.#attended.add(attended);
    slot.ready.then(
      ({ record }) => {
        attended.leader = readLaunchRecord(record)?.pid;
      },
      () => undefined,
    );
    this.#checkIn(checkMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #checkIn(ms: number): void {
    if (this.#isStopped) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#check();
    }, ms);
  }

  #check(): void {
    for (const attended of this.#attended) if (attended.slot.isKilled) this.#attended.delete(attended);
    const all = [...this.#attended];
    if (all.length === 0) return;
    const usages = this.#census.count(all);
    for (const [index, attended] of all.entries()) {
      const usage = usages[index];
      if (usage) this.#judge(attended, usage);
    }
    void this.#diskWatch.measure([...this.#attended], (attended, bytes) =>
      this.#over(attended, "disk", inMebibytes(bytes)),
    );
    const { memoryBytes } = this.#options.bounds;
    this.#checkIn(usages.some((usage) => usage.memoryBytes > memoryBytes / 2) ? alertMs : checkMs);
  }

  #judge(attended: Attended, usage: SlotUsage): void {
    const { bounds } = this.#options;
    if (usage.tasks > bounds.tasks) this.#over(attended, "tasks", String(usage.tasks));
    if (usage.memoryBytes > bounds.memoryBytes) void this.#weigh(attended, usage);
  }

  async #weigh(attended: Attended, usage: SlotUsage): Promise<void> {
    const { memoryBytes } = this.#options.bounds;
    if (performance.now() - attended.weighedAt < weighMs) return;
    attended.weighedAt = performance.now();
    const exact = await exactMemory(usage);
    if (exact > memoryBytes) this.#over(attended, "memory", inMebibytes(exact));
  }

  #over(attended: Attended, bound: BoundName, taken: string): void {
    if (!this.#attended.delete(attended)) return;
    const { bounds, onOver } = this.#options;
    const allowed = {
      memory: `${inMebibytes(bounds.memoryBytes)} of memory`,
      tasks: `${bounds.tasks} tasks`,
      disk: `${inMebibytes(bounds.diskBytes)} on disk`,
    };
    onOver?.(bound);
    attended.end(`the session exceeded its bound of ${allowed[bound]}: it used ${taken}`);
  }
}

function inMebibytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return "an unknown amount";
  return `${Math.round(bytes / mib)} MiB`;
}
