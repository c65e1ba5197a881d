import { DiskWatch, type MeasuredDirectories } from "./disk-watch.ts";
import { readLaunchRecord } from "./launch-record.ts";
import type { SessionBounds } from "./session-bounds.ts";
import type { Slot } from "./slot.ts";
import { exactMemory, type Occupant, SlotCensus, type SlotUsage } from "./slot-census.ts";

/** Milliseconds between checks of all sessions. Checking 16 sessions uses 0.6 % of a core. */
const checkMs = 1_500;
/** Milliseconds between checks while any session uses more than half of its memory bound. */
const alertMs = 200;

/**
 * Minimum milliseconds between exact memory readings of a session. A reading occupies another core for up to 200 ms.
 */
const exactMemoryMs = 500;

const mib = 2 ** 20;

/** Resources that are bounded per session. */
export type BoundName = "memory" | "tasks" | "disk";

export interface BoundsWatchdogOptions {
  readonly bounds: SessionBounds;
  /** Called for each session that exceeds a bound. */
  onOver?(bound: BoundName): void;
}

interface WatchedSlot extends Occupant, MeasuredDirectories {
  readonly slot: Slot;
  leader: number | undefined;
  exactAt: number;
  end(detail: string): void;
}

/** Ends sessions that exceed their resource bounds. One timer checks all sessions. */
export class BoundsWatchdog {
  readonly #options: BoundsWatchdogOptions;
  readonly #census = new SlotCensus();
  readonly #diskWatch: DiskWatch;
  readonly #watched = new Set<WatchedSlot>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: BoundsWatchdogOptions) {
    this.#options = options;
    this.#diskWatch = new DiskWatch(options.bounds.diskBytes);
  }

  /**
   * Checks a session's slot until its processes are killed. `end` is called at most once, with a text that names the
   * exceeded bound.
   */
  watch(slot: Slot, end: (detail: string) => void): void {
    const watched: WatchedSlot = {
      slot,
      uid: slot.uid,
      leader: undefined,
      exactAt: Number.NEGATIVE_INFINITY,
      directories: [slot.directory, slot.storage],
      measuredAt: undefined,
      end,
    };
    this.#watched.add(watched);
    slot.ready.then(
      ({ record }) => {
        watched.leader = readLaunchRecord(record)?.pid;
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
    for (const watched of this.#watched) if (watched.slot.isKilled) this.#watched.delete(watched);
    const all = [...this.#watched];
    if (all.length === 0) return;
    const usages = this.#census.count(all);
    for (const [index, watched] of all.entries()) {
      const usage = usages[index];
      if (usage) this.#checkUsage(watched, usage);
    }
    void this.#diskWatch.measure([...this.#watched], (watched, bytes) =>
      this.#over(watched, "disk", inMebibytes(bytes)),
    );
    const { memoryBytes } = this.#options.bounds;
    this.#checkIn(usages.some((usage) => usage.memoryBytes > memoryBytes / 2) ? alertMs : checkMs);
  }

  #checkUsage(watched: WatchedSlot, usage: SlotUsage): void {
    const { bounds } = this.#options;
    if (usage.tasks > bounds.tasks) this.#over(watched, "tasks", String(usage.tasks));
    if (usage.memoryBytes > bounds.memoryBytes) void this.#checkMemory(watched, usage);
  }

  async #checkMemory(watched: WatchedSlot, usage: SlotUsage): Promise<void> {
    const { memoryBytes } = this.#options.bounds;
    if (performance.now() - watched.exactAt < exactMemoryMs) return;
    watched.exactAt = performance.now();
    const exact = await exactMemory(usage);
    if (exact > memoryBytes) this.#over(watched, "memory", inMebibytes(exact));
  }

  #over(watched: WatchedSlot, bound: BoundName, taken: string): void {
    if (!this.#watched.delete(watched)) return;
    const { bounds, onOver } = this.#options;
    const allowed = {
      memory: `${inMebibytes(bounds.memoryBytes)} of memory`,
      tasks: `${bounds.tasks} tasks`,
      disk: `${inMebibytes(bounds.diskBytes)} on disk`,
    };
    onOver?.(bound);
    watched.end(`the session exceeded its bound of ${allowed[bound]}: it used ${taken}`);
  }
}

function inMebibytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return "an unknown amount";
  return `${Math.round(bytes / mib)} MiB`;
}
