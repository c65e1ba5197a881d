import { expect, vi } from "vitest";
import { durations } from "./durations.ts";

/** Waits on the faked clock. Stands for `setTimeout` of `node:timers/promises`, which vitest does not fake. */
function delay<Value>(
  ms: number,
  value?: Value,
  { signal }: { signal?: AbortSignal } = {},
): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const timer = globalThis.setTimeout(resolve, ms, value);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

export { delay as setTimeout };

/**
 * Fakes the timers and clocks of this process, and `AbortSignal.timeout`. A test file that uses it also mocks
 * `node:timers/promises` by this module.
 */
export function fakeTime(): void {
  vi.useFakeTimers();
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
    const timeout = new AbortController();
    globalThis.setTimeout(() => timeout.abort(new DOMException("timeout", "TimeoutError")), ms);
    return timeout.signal;
  });
}

/** Gives the time of this process back. */
export function restoreTime(): void {
  vi.useRealTimers();
  vi.restoreAllMocks();
}

/** Returns a duration of the product in milliseconds, as the table of durations has it; of a list, the sum. */
function durationOf(place: string): number {
  const row = durations.find(([file, name]) => `${file} ${name}` === place);
  if (!row) throw new Error(`the table of durations has no ${place}`);
  const numbers = row[2].match(/\d[\d_]*/g) ?? [];
  return numbers.reduce((sum, each) => sum + Number(each.replaceAll("_", "")), 0);
}

/** Begins what a duration ends: it is over when a promise that is returned settles, or `onOver` is called. */
export type Begin = (onOver: () => void) => unknown;

/**
 * Expects something to be over after a duration of the product, or at most half as much again for what comes with it.
 * `place` is the file and the name of the duration.
 */
export async function expectToTake(place: string, begin: Begin): Promise<void> {
  const ms = durationOf(place);
  const beganAt = performance.now();
  let took: number | undefined;
  const onOver = (): void => {
    took ??= performance.now() - beganAt;
  };
  const begun = begin(onOver);
  if (begun instanceof Promise) begun.then(onOver, onOver);
  await vi.advanceTimersByTimeAsync(2 * ms);
  expect(took, "milliseconds until it was over").toBeGreaterThanOrEqual(ms);
  expect(took, "milliseconds until it was over").toBeLessThanOrEqual(1.5 * ms);
}

/** Calls a function when it is called for the nth time. */
export function atCall(nth: number, onCall: () => void): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (calls === nth) onCall();
  };
}
