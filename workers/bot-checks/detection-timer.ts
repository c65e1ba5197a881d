import { within } from "../../src/platform/deadline.ts";

/** Minimum milliseconds between the end of a check and the next check that an event triggers. */
const spacingMs = 250;

/** Schedules checks of a page. At most one check runs at a time. */
export class DetectionTimer {
  readonly #detect: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  /** Delays of the checks after the next one. */
  #following: readonly number[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;
  #isDetecting = false;
  #end = Promise.withResolvers<void>();
  #isStopped = false;

  /** `detect` must not reject and must always settle. */
  constructor(detect: () => Promise<void>) {
    this.#detect = detect;
  }

  /** Checks now, or after the running check. */
  runNow(): void {
    this.#scheduleAt(performance.now());
  }

  /** Checks after `ms`, unless an earlier check is due. */
  runAfter(ms: number): void {
    this.#scheduleAt(performance.now() + ms);
  }

  /** Replaces the pending checks. Each further delay starts at the end of the previous check. */
  schedule([first, ...following]: readonly number[]): void {
    this.#following = following;
    if (first === undefined) this.#cancel();
    else this.#scheduleAt(Math.max(performance.now() + first, this.#endedAt + spacingMs));
  }

  /** Resolves at the end of the next check, or after `ms`. */
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
    // A check that falls due during a running check starts after it.
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
    const [next, ...following] = this.#following;
    this.#following = following;
    const dueAt = this.#dueAt;
    this.#cancel();
    if (next !== undefined) this.runAfter(next);
    if (dueAt !== Number.POSITIVE_INFINITY) this.#scheduleAt(dueAt);
    this.#end.resolve();
    this.#end = Promise.withResolvers<void>();
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}
