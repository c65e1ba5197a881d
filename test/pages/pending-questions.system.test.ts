import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { PendingQuestions } from "../../workers/pages/pending-questions.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Opens a queue of dialogs, and records its results. */
function open() {
  const desk = new PendingQuestions(() => undefined);
  const settled: string[] = [];
  const ask = (message: string) =>
    desk.ask({ kind: "confirm", message }, async (answer) => void settled.push(`${message} ${answer?.accept}`));
  const asked = () => [...desk.open].map(({ message }) => message);
  return { desk, settled, ask, asked };
}

test("asks no question while no person is in control", () => {
  const { ask, asked } = open();
  expect(ask("a")).toBeUndefined();
  expect(asked()).toEqual([]);
});

test("settles a question after 60 seconds without an answer", () => {
  const { desk, settled, ask, asked } = open();
  desk.setHolder("view:ada");
  ask("a");
  vi.advanceTimersByTime(59_999);
  expect(asked()).toEqual(["a"]);
  vi.advanceTimersByTime(1);
  expect({ asked: asked(), settled }).toEqual({ asked: [], settled: ["a undefined"] });
});

test("restarts the time of a question during and after an upload", () => {
  const { desk, settled, ask, asked } = open();
  desk.setHolder("view:ada");
  ask("a");
  const [first, second] = [desk.pauseTimeouts(), desk.pauseTimeouts()];
  vi.advanceTimersByTime(100_000);
  first[Symbol.dispose]();
  vi.advanceTimersByTime(100_000);
  second[Symbol.dispose]();
  vi.advanceTimersByTime(59_999);
  expect(asked()).toEqual(["a"]);
  vi.advanceTimersByTime(1);
  expect(settled).toEqual(["a undefined"]);
});

test("settles questions when another person takes control, but not when control is renewed", () => {
  const { desk, settled, ask, asked } = open();
  desk.setHolder("view:ada");
  ask("a");
  desk.setHolder("view:ada");
  expect(asked()).toEqual(["a"]);
  desk.setHolder("view:ben");
  expect({ asked: asked(), settled }).toEqual({ asked: [], settled: ["a undefined"] });
});

test("does not settle a withdrawn question", async () => {
  const { desk, settled, ask } = open();
  desk.setHolder("view:ada");
  ask("a")?.[Symbol.dispose]();
  await expect(
    desk.answer({ $typeName: "pilothouse.v1.LiveAnswer", questionId: "que_1", accept: true, files: [], text: "" }),
  ).rejects.toThrow("the question is no longer open");
  desk.setHolder(undefined);
  vi.runAllTimers();
  expect(settled).toEqual([]);
});

test("holds at most 64 open questions", () => {
  const { desk, ask, asked } = open();
  desk.setHolder("view:ada");
  for (let index = 0; index < 70; index++) ask(String(index));
  expect(asked().length).toBe(64);
});

test("ignores that a page is gone when its question is settled", async () => {
  const { desk, asked } = open();
  desk.setHolder("view:ada");
  desk.ask({ kind: "select" }, () => Promise.reject(new Error("gone")));
  desk.setHolder(undefined);
  await vi.runAllTimersAsync();
  expect(asked()).toEqual([]);
});
