import { within } from "../../src/platform/deadline.ts";

/** Looks that events ask for are this far apart, whatever a page does to raise events. */
const spacingMs = 250;

/** Decides when a page is looked at: never twice at a time, and not again before there is a reason to. */
export class LookTimer {
  readonly #look: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  /** Delays of the looks after the next one. */
  #following: readonly number[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;
  #isLooking = false;
  #end = Promise.withResolvers<void>();
  #isStopped = false;

  /** The look must not fail, and must come to its end by itself. */
  constructor(look: () => Promise<void>) {
    this.#look = look;
  }

  /** Looks at once, or as soon as the look that runs has ended. */
  now(): void {
    this.#askFor(performance.now());
  }

  /** Looks after this time, unless one comes earlier. */
  after(ms: number): void {
    this.#askFor(performance.now() + ms);
  }

  /** Looks after each of these times, one counted from the end of the other, in place of what was to follow. */
  follow([first, ...following]: readonly number[]): void {
    this.#following = following;
    if (first === undefined) this.#cancel();
    else this.#askFor(Math.max(performance.now() + first, this.#endedAt + spacingMs));
  }

  /** Resolves at the end of the next look, or when the time is up. */
  nextEnd(ms: number): Promise<void> {
    return within(this.#end.promise, ms, undefined);
  }

  /** Looks no more. */
  stop(): void {
    this.#isStopped = true;
    this.#following = [];
    this.#cancel();
  }

  #askFor(at: number): void {
    if (this.#isStopped || at >= this.#dueAt) return;
    this.#cancel();
    this.#dueAt = at;
    // What falls due while a look runs is taken up at its end.
    if (this.#isLooking) return;
    const delay = at - performance.now();
    if (delay <= 0) void this.#run();
    else this.#timer = setTimeout(() => void this.#run(), delay);
  }

  async #run(): Promise<void> {
    this.#cancel();
    this.#isLooking = true;
    await this.#look();
    this.#isLooking = false;
    this.#endedAt = performance.now();
    const [next, ...following] = this.#following;
    this.#following = following;
    const dueAt = this.#dueAt;
    this.#cancel();
    if (next !== undefined) this.after(next);
    if (dueAt !== Number.POSITIVE_INFINITY) this.#askFor(dueAt);
    this.#end.resolve();
    this.#end = Promise.withResolvers<void>();
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    this.#dueAt = Number.POSITIVE_INFINITY;
  }
}
