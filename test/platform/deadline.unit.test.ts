import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { Deadline, raceSignal, unlessLate, within } from "../../src/platform/deadline.ts";

const never = new Promise<never>(() => undefined);

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

test("returns an outcome that precedes the signal and leaves no listener on the signal", async () => {
  const { signal } = new AbortController();
  await expect(raceSignal(Promise.resolve(1), signal)).resolves.toBe(1);
  await expect(raceSignal(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
  await nextTurn();
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("rejects with the signal's reason if the signal is aborted first or beforehand", async () => {
  const controller = new AbortController();
  const running = raceSignal(never, controller.signal);
  controller.abort(new Error("the caller left"));
  await expect(running).rejects.toThrow("the caller left");
  await expect(raceSignal(never, controller.signal)).rejects.toThrow("the caller left");
});

test("names the late operation in the error, only after its time is up", async () => {
  const late = vi.fn(() => "late");
  await expect(unlessLate(Promise.resolve("in time"), 1, late)).resolves.toBe("in time");
  await nextTurn();
  expect(late).not.toHaveBeenCalled();
  await expect(unlessLate(never, 1, late)).resolves.toBe("late");
  await expect(unlessLate(never, 1, () => Promise.reject(new Error("too late")))).rejects.toThrow("too late");
});

test("prefers an outcome that arrived while the process was busy to a timeout", async () => {
  const late = vi.fn(() => "late");
  const answer = Promise.withResolvers<string>();
  const verdict = unlessLate(answer.promise, 5, late);
  setImmediate(() => answer.resolve("in time"));
  block(20);
  await expect(verdict).resolves.toBe("in time");
  expect(late).not.toHaveBeenCalled();
});

test("returns the fallback for an operation that fails or is late", async () => {
  await expect(within(Promise.resolve(1), 1_000, 0)).resolves.toBe(1);
  await expect(within(Promise.reject(new Error("broken")), 1_000, 0)).resolves.toBe(0);
  await expect(within(never, 1, 0)).resolves.toBe(0);
});

test("aborts an operation on timeout or when its caller leaves, with the cause as the reason", async () => {
  using short = new Deadline(1, () => new Error("time is up"));
  await expect(raceSignal(never, short.signal)).rejects.toThrow("time is up");
  const caller = new AbortController();
  using long = new Deadline(60_000, () => new Error("time is up"), [caller.signal]);
  caller.abort(new Error("the caller left"));
  expect(long.signal.reason).toMatchObject({ message: "the caller left" });
});
