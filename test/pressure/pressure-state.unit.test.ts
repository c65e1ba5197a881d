import { expect, test } from "vitest";
import { initialPressure, nextPressure, type PressureRule } from "../../workers/pressure/pressure-state.ts";
import { PressureWatch } from "../../workers/pressure/pressure-watch.ts";

const rule: PressureRule = { closeAt: 0.9, openBelow: 0.8, closeAfter: 2, openAfter: 3 };

/** Values at 0, 1, 2, ... and whether the gate is closed after each. */
const courses: readonly [string, readonly number[], string][] = [
  ["stays open below the upper threshold", [0.5, 0.89, 0.5], "---"],
  ["closes when it has been at the threshold for its time", [0.9, 0.9, 0.9, 0.9], "--xx"],
  ["forgets a peak that is shorter than its time", [0.95, 0.95, 0.5, 0.95, 0.95, 0.95], "-----x"],
  ["stays closed between the thresholds", [1, 1, 1, 0.85, 0.85, 0.85, 0.85, 0.85], "--xxxxxx"],
  ["opens when it has been below the lower one for its time", [1, 1, 1, 0.7, 0.7, 0.7, 0.7], "--xxxx-"],
  ["forgets a lull that is shorter than its time", [1, 1, 1, 0.7, 0.7, 0.8, 0.7, 0.7, 0.7, 0.7], "--xxxxxxx-"],
  ["closes again after it has opened", [1, 1, 1, 0, 0, 0, 0, 1, 1, 1], "--xxxx---x"],
];

test.for(courses)("a gate %s", ([, values, wanted]) => {
  let state = initialPressure;
  const seen = values.map((value, now) => {
    state = nextPressure(state, rule, value, now);
    return state.isClosed ? "x" : "-";
  });
  expect(seen.join("")).toBe(wanted);
});

test("a watch reports each change once with the worst cause, opens at low thresholds, and never closes at 100", () => {
  const calm = { memory: 0.1, memory_stall: 0, cpu: 0 };
  let pressure = calm;
  const told: (string | undefined)[] = [];
  const make = (memory: number, cpu: number) =>
    new PressureWatch({ closeAt: { memory, cpu }, read: () => pressure, onChange: (closedBy) => told.push(closedBy) });
  const watch = make(90, 85);
  const run = (from: number, seconds: number, next: typeof calm) => {
    pressure = next;
    for (let second = 0; second <= seconds; second += 1) watch.measure((from + second) * 1_000);
  };
  run(0, 3, calm);
  run(10, 10, { ...calm, cpu: 0.99 });
  run(30, 3, { memory: 0.95, memory_stall: 0, cpu: 0.99 });
  run(40, 10, { ...calm, cpu: 0.99 });
  run(60, 10, calm);
  expect(told).toEqual(["cpu", "memory", "cpu", undefined]);

  told.length = 0;
  const early = make(10, 10);
  pressure = { memory: 0.1, memory_stall: 0, cpu: 0.1 };
  for (let second = 0; second < 10; second += 1) early.measure(second * 1_000);
  pressure = { memory: 0.04, memory_stall: 0, cpu: 0.04 };
  for (let second = 10; second < 20; second += 1) early.measure(second * 1_000);
  expect(told).toEqual(["memory", "cpu", undefined]);

  told.length = 0;
  const never = make(100, 100);
  pressure = { memory: 1, memory_stall: 1, cpu: 1 };
  for (let second = 0; second < 60; second += 1) never.measure(second * 1_000);
  expect(told).toEqual([]);
});

test("a watch closes and opens after the delays of each pressure", () => {
  const calm = { memory: 0.1, memory_stall: 0, cpu: 0.1 };
  let now = 0;
  let pressure = calm;
  const changes: string[] = [];
  const watch = new PressureWatch({
    closeAt: { memory: 90, cpu: 85 },
    read: () => pressure,
    onChange: (closedBy) => changes.push(`${closedBy ?? "none"} ${now}`),
  });
  const run = (next: typeof calm) => {
    pressure = next;
    for (const end = now + 10_000; now < end; now += 500) watch.measure(now);
  };
  for (const high of [{ memory: 0.95 }, { memory_stall: 0.3 }, { cpu: 0.99 }]) {
    run({ ...calm, ...high });
    run(calm);
  }
  expect(changes.join()).toBe("memory 0,none 13000,memory_stall 20000,none 35000,cpu 45000,none 55000");
});
