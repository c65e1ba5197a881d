import { within } from "../../src/platform/deadline.ts";

/** Minimum milliseconds between the end of a detection and the first detection that `schedule` adds. */
const spacingMs = 250;

/** Schedules the detections of a page. At most one detection runs at a time. */
export class DetectionTimer {
  readonly #detect: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  /** Delays in milliseconds of the detections that follow the next detection. */
  #following: readonly number[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;
  #isDetecting = false;
  #end = Promise.withResolvers<void>();
  #isStopped = false;

  /** `detect` must not reject and must always settle. */
  constructor(detect: () => Promise<void>) {
    this.#detect = detect;
  }

  /** Starts a detection now, or after the running detection. */
  runNow(): void {
    this.#scheduleAt(performance.now());
  }

  /** Schedules a detection in `ms` milliseconds, unless an earlier detection is scheduled. */
  runAfter(ms: number): void {
    this.#scheduleAt(performance.now() + ms);
  }

  /**
   * Replaces the delays of following detections. The first delay starts now, each further delay at the end of the
   * previous detection. An earlier scheduled detection is kept. An empty list cancels all scheduled detections.
   */
  schedule([first, ...following]: readonly number[]): void {
    this.#following = following;
    if (first === undefined) this.#cancel();
    else this.#scheduleAt(Math.max(performance.now() + first, this.#endedAt + spacingMs));
  }

  /** Resolves at the end of the running detection, otherwise of the next detection, or after `ms` milliseconds. */
  nextEnd(ms: number): Promise<void> {
    return within(this.#end.promise, ms, undefined);
  }

  stop(): void {
    this.#isStopped = true;
    this.#following = [];
    this.#cancel();
  }

  #scheduleAt(at: number): void {
    if (this.#isStopped || at >= this.#dueAt) return;
    this.#cancel();
    this.#dueAt = at;
    // If a detection is running, `#run` schedules the next detection at its end.
    if (this.#isDetecting) return;
    const delay = at - performance.now();
    if (delay <= 0) void this.#run();
    else this.#timer = setTimeout(() => void this.#run(), delay);
  }

  async #run(): Promise<void> {
    this.#cancel();
    this.#isDetecting = true;
    await this.#detect();
    this.#isDetecting = false;
    this.#endedAt = performance.now();
    const [next = Number.POSITIVE_INFINITY, ...following] = this.#following;
    const dueAt = this.#dueAt;
    const nextAt = this.#endedAt + next;
    this.#cancel();
    // If another detection is due first, the following delay starts at the end of that detection.
    if (nextAt < dueAt) this.#following = following;
    this.#scheduleAt(Math.min(nextAt, dueAt));
    this.#end.resolve();
    this.#end = Promise.withResolvers<void>();
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}
