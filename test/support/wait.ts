import { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, vi } from "vitest";

/** Wait of the product with a time limit in milliseconds. */
export interface Wait {
  readonly ms: number;
  /** Tolerance in both directions; by default half the time less or the same time more. */
  readonly slack?: number;
  /** Starts the wait and calls `end` when it is over. */
  begin(end: () => void): unknown;
}

/** Fakes timers and clocks of this process until `restoreTime`. Sockets work normally. */
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

/** Socket timeouts, for which Node uses internal clocks. Traffic on the socket does not reset these fakes. */
const socketTimers = new WeakMap<Socket, NodeJS.Timeout>();

/** Advances faked time in steps of at most a second, with real socket activity between the steps. */
export async function pass(milliseconds: number): Promise<void> {
  const steps = Math.max(20, Math.ceil(milliseconds / 1_000));
  for (let step = 0; step < steps; step += 1) {
    await vi.advanceTimersByTimeAsync(milliseconds / steps);
    for (let turn = 0; turn < 5; turn += 1) await setImmediate();
  }
}

/** Waits up to a second of real time for a condition. Unlike `expect.poll`, does not advance faked time. */
export async function settle(condition: () => boolean, milliseconds = 1_000): Promise<void> {
  const latest = process.hrtime.bigint() + BigInt(milliseconds) * 1_000_000n;
  while (!condition() && process.hrtime.bigint() < latest) await setImmediate();
}

/** Expects a wait to last almost its whole time and to end soon after. Fakes the time if needed. */
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
    // Database queries around the wait take real time.
    await settle(() => isOver, 50);
  }
  expect(isOver, `is over ${before} ms too soon`).toBe(false);
  // On a busy machine the wait may have started late.
  for (let round = 0; round < 3 && !isOver; round += 1) {
    await pass(before + after);
    await settle(() => isOver);
  }
  expect(isOver, `goes on ${after} ms too long`).toBe(true);
}
