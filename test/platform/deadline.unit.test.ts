import { getEventListeners } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { Deadline, raceSignal, unlessLate, within } from "../../src/platform/deadline.ts";

const never = new Promise<never>(() => undefined);

function block(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

test("should give an outcome that comes before the signal, and leave nothing on the signal", async () => {
  const { signal } = new AbortController();
  await expect(raceSignal(Promise.resolve(1), signal)).resolves.toBe(1);
  await expect(raceSignal(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
  await nextTurn();
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("should fail with the reason of a signal that comes first, or has come", async () => {
  const controller = new AbortController();
  const running = raceSignal(never, controller.signal);
  controller.abort(new Error("the caller has gone"));
  await expect(running).rejects.toThrow("the caller has gone");
  await expect(raceSignal(never, controller.signal)).rejects.toThrow("the caller has gone");
});

test("should say what is late, and only then", async () => {
  const late = vi.fn(() => "late");
  await expect(unlessLate(Promise.resolve("in time"), 1, late)).resolves.toBe("in time");
  await nextTurn();
  expect(late).not.toHaveBeenCalled();
  await expect(unlessLate(never, 1, late)).resolves.toBe("late");
  await expect(unlessLate(never, 1, () => Promise.reject(new Error("too late")))).rejects.toThrow("too late");
});

test("should read an outcome that came while the process was busy before it says late", async () => {
  const late = vi.fn(() => "late");
  const answer = Promise.withResolvers<string>();
  const verdict = unlessLate(answer.promise, 5, late);
  setImmediate(() => answer.resolve("in time"));
  block(20);
  await expect(verdict).resolves.toBe("in time");
  expect(late).not.toHaveBeenCalled();
});

test("should give the fallback for what fails or is late", async () => {
  await expect(within(Promise.resolve(1), 1_000, 0)).resolves.toBe(1);
  await expect(within(Promise.reject(new Error("broken")), 1_000, 0)).resolves.toBe(0);
  await expect(within(never, 1, 0)).resolves.toBe(0);
});

test("should end work when its time is up or its caller goes, with which of them it was", async () => {
  using short = new Deadline(1, () => new Error("time is up"));
  await expect(raceSignal(never, short.signal)).rejects.toThrow("time is up");
  const caller = new AbortController();
  using long = new Deadline(60_000, () => new Error("time is up"), [caller.signal]);
  caller.abort(new Error("the caller has gone"));
  expect(long.signal.reason).toMatchObject({ message: "the caller has gone" });
});
