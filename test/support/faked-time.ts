import { expect, vi } from "vitest";
import { durations } from "./durations.ts";

/** Waits on the faked clock. Replaces `setTimeout` of `node:timers/promises`, which vitest does not fake. */
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
 * Fakes timers, clocks and `AbortSignal.timeout` of this process. A test file that uses it also mocks
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

/** Restores the real time of this process. */
export function restoreTime(): void {
  vi.useRealTimers();
  vi.restoreAllMocks();
}

/** Returns a duration from the table in milliseconds, or the sum of a list. */
function durationOf(place: string): number {
  const row = durations.find(([file, name]) => `${file} ${name}` === place);
  if (!row) throw new Error(`the table of durations has no ${place}`);
  const numbers = row[2].match(/\d[\d_]*/g) ?? [];
  return numbers.reduce((sum, each) => sum + Number(each.replaceAll("_", "")), 0);
}

/** Starts the operation that the duration limits. The duration has ended when the returned promise settles or `onOver` is called. */
export type Begin = (onOver: () => void) => unknown;

/**
 * Expects an operation to take a duration of the product, or up to half as long again. `place` is the file and name of
 * the duration.
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

/** Returns a function that runs `onCall` at its nth call. */
export function atCall(nth: number, onCall: () => void): () => void {
  let calls = 0;
  return () => {
    calls += 1;
    if (calls === nth) onCall();
  };
}
