import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, vi } from "vitest";

/** A wait of the product that ends after so many milliseconds. */
export interface Wait {
  readonly ms: number;
  /** How much shorter or longer it may be; half of its time and as long again, where nothing else is said. */
  readonly slack?: number;
  /** Begins the wait; calls `end` when it is over. */
  begin(end: () => void): unknown;
}

/** Fakes timers and clocks of this process, until `restoreTime`. Sockets work on. */
export function fakeTime(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  vi.spyOn(AbortSignal, "timeout").mockImplementation((milliseconds) => {
    const timeout = new AbortController();
    setTimeout(() => timeout.abort(new DOMException("timed out", "TimeoutError")), milliseconds);
    return timeout.signal;
  });
  vi.spyOn(Socket.prototype, "setTimeout").mockImplementation(function (this: Socket, milliseconds, listener) {
    clearTimeout(socketTimers.get(this));
    if (listener) this.once("timeout", listener);
    if (milliseconds > 0)
      socketTimers.set(
        this,
        setTimeout(() => this.emit("timeout"), milliseconds),
      );
    return this;
  });
}

/** Restores timers and clocks. */
export function restoreTime(): void {
  vi.useRealTimers();
  vi.restoreAllMocks();
}

/** Timeouts of sockets, for which Node has clocks of its own. What comes and goes on a socket does not put them off. */
const socketTimers = new WeakMap<Socket, NodeJS.Timeout>();

/** Lets faked time pass, at most a second at once: what it causes on sockets happens meanwhile. */
export async function pass(milliseconds: number): Promise<void> {
  const steps = Math.max(20, Math.ceil(milliseconds / 1_000));
  for (let step = 0; step < steps; step += 1) {
    await vi.advanceTimersByTimeAsync(milliseconds / steps);
    for (let turn = 0; turn < 5; turn += 1) await setImmediate();
  }
}

/** Waits for a condition, a second of real time at most. No faked time passes, as it would by `expect.poll`. */
export async function settle(condition: () => boolean, milliseconds = 1_000): Promise<void> {
  const latest = process.hrtime.bigint() + BigInt(milliseconds) * 1_000_000n;
  while (!condition() && process.hrtime.bigint() < latest) await setImmediate();
}

/** Expects a wait to go on for almost its time, and to be over soon after. Fakes the time, unless it is faked already. */
export async function expectWait({ ms, slack, begin }: Wait): Promise<void> {
  const [before, after] = slack === undefined ? [ms / 2, ms] : [slack, slack];
  if (!vi.isFakeTimers()) {
    fakeTime();
    onTestFinished(restoreTime);
  }
  let isOver = false;
  await begin(() => {
    isOver = true;
  });
  for (let round = 0; round < 2; round += 1) {
    await pass((ms - before) / 2);
    // What PostgreSQL is asked before the wait, and after one that is too short, takes real time.
    await settle(() => isOver, 50);
  }
  expect(isOver, `is over ${before} ms too soon`).toBe(false);
  // On a busy machine the wait may have begun late.
  for (let round = 0; round < 3 && !isOver; round += 1) {
    await pass(before + after);
    await settle(() => isOver);
  }
  expect(isOver, `goes on ${after} ms too long`).toBe(true);
}
