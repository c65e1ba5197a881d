import { expect, test } from "vitest";
import { componentNames, type Health, healths, isDown } from "../../src/status/components.ts";
import { historyOf } from "../../src/status/days.ts";
import { monthsUntil, percentOf, reportMonths, type Span } from "../../src/status/sla.ts";

const minute = 60_000;

/** Deterministic pseudorandom numbers. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Generates the health of two components by minute: runs of minutes to days, with gaps. */
function generate(
  seed: number,
  from: number,
  to: number,
): { spans: Span[]; minutes: Map<string, (Health | undefined)[]> } {
  const random = randomFrom(seed);
  const spans: Span[] = [];
  const minutes = new Map<string, (Health | undefined)[]>();
  for (const component of ["api", "sessions"] as const) {
    const all: (Health | undefined)[] = Array(random(5_000)).fill(undefined);
    while (all.length < (to - from) / minute) {
      const length = Math.min(1 + random(random(2) === 0 ? 30 : 4_000), (to - from) / minute - all.length);
      const health = random(8) === 0 ? undefined : healths[random(2) === 0 ? 0 : random(healths.length)];
      const begin = from + all.length * minute;
      if (health) spans.push({ component, health, from: begin, to: begin + length * minute });
      all.push(...Array(length).fill(health));
    }
    minutes.set(component, all);
  }
  return { spans, minutes };
}

/** Counts each minute in its calendar month. */
function countByHand(minutes: ReadonlyMap<string, readonly (Health | undefined)[]>, from: number) {
  const months = new Map<string, Map<string, { counted: number; down: number }>>();
  const note = (month: string, name: string, health: readonly (Health | undefined)[]) => {
    const there = health.filter((each) => each !== undefined && each !== "maintenance");
    const own = months.get(month) ?? new Map();
    months.set(month, own);
    const sum = own.get(name) ?? { counted: 0, down: 0 };
    own.set(name, sum);
    if (there.length === 0) return;
    sum.counted += minute;
    if (there.some((each) => each && isDown(each))) sum.down += minute;
  };
  const [api = [], sessions = []] = [minutes.get("api"), minutes.get("sessions")];
  for (let index = 0; index < api.length; index += 1) {
    const month = new Date(from + index * minute).toISOString().slice(0, 7);
    note(month, "whole", [api[index], sessions[index]]);
    note(month, "api", [api[index]]);
    note(month, "sessions", [sessions[index]]);
  }
  return months;
}

const times = [
  ["a leap year", 1, "2028-01-01", "2028-04-01"],
  ["a common year", 2, "2027-01-01", "2027-04-01"],
  ["a century without a leap day", 3, "2100-02-01", "2100-04-01"],
  ["the end of a year", 4, "2026-11-01", "2027-02-01"],
] as const;

test.each(times)("the report of %s equals a count minute by minute", (_, seed, first, last) => {
  const [from, to] = [Date.parse(first), Date.parse(last)];
  const { spans, minutes } = generate(seed, from, to);
  const byHand = countByHand(minutes, from);
  const report = reportMonths(spans, monthsUntil(to - 1, 12));
  expect(report.map(({ name }) => name)).toEqual([...byHand.keys()].toReversed());
  for (const { name, components, counted, down } of report) {
    const expected = byHand.get(name);
    expect({ counted, down }).toEqual(expected?.get("whole"));
    for (const { name: component, ...own } of components) expect(own).toEqual(expected?.get(component));
  }
});

test("a month ends by the calendar, and percentages are rounded down", () => {
  expect(monthsUntil(Date.parse("2028-03-31T23:59:59.999Z"), 3)).toEqual([
    { name: "2028-03", from: Date.parse("2028-03-01"), to: Date.parse("2028-04-01") },
    { name: "2028-02", from: Date.parse("2028-02-01"), to: Date.parse("2028-03-01") },
    { name: "2028-01", from: Date.parse("2028-01-01"), to: Date.parse("2028-02-01") },
  ]);
  // Eight minutes of November, as in the contract's example, and one second of a year.
  expect(percentOf({ counted: 30 * 1_440 * minute, down: 8 * minute })).toBe(99.981);
  expect(percentOf({ counted: 365 * 1_440 * minute, down: 1_000 })).toBe(99.999);
  expect(percentOf({ counted: 1_000, down: 0 })).toBe(100);
  expect(percentOf({ counted: 0, down: 0 })).toBe(100);
});

test("degraded time is up, maintenance does not count, and time before the first measurement is ignored", () => {
  const at = (text: string): number => Date.parse(`2026-11-${text}:00:00Z`);
  const span = (health: Health, from: string, to: string): Span => ({
    component: "sessions",
    health,
    from: at(from),
    to: at(to),
  });
  const spans = [span("degraded", "10T00", "11T00"), span("maintenance", "11T00", "12T00")];
  const [month] = reportMonths([...spans, span("major_outage", "12T00", "12T06")], monthsUntil(at("12T06"), 3));
  expect(month).toMatchObject({ name: "2026-11", counted: 30 * 60 * minute, down: 6 * 60 * minute });
  expect(month && percentOf(month)).toBe(80);
});

test("days show their worst health, and no health without measurements", () => {
  const now = Date.parse("2026-11-23T12:00:00Z");
  const from = Date.parse("2026-11-21T18:00:00Z");
  const spans: Span[] = [
    { component: "api", health: "operational", from, to: Date.parse("2026-11-22T01:00:00Z") },
    {
      component: "api",
      health: "partial_outage",
      from: Date.parse("2026-11-22T01:00:00Z"),
      to: Date.parse("2026-11-22T02:00:00Z"),
    },
    { component: "api", health: "operational", from: Date.parse("2026-11-22T02:00:00Z"), to: now },
  ];
  const { days, percent } = historyOf(spans, "api", now);
  expect(days).toHaveLength(90);
  expect(days.slice(-4)).toEqual([
    { date: "2026-11-20", health: undefined, downSeconds: 0 },
    { date: "2026-11-21", health: "operational", downSeconds: 0 },
    { date: "2026-11-22", health: "partial_outage", downSeconds: 3_600 },
    { date: "2026-11-23", health: "operational", downSeconds: 0 },
  ]);
  expect(percent).toBe(97.619);
  for (const name of componentNames.filter((each) => each !== "api"))
    expect(historyOf(spans, name, now).percent).toBeUndefined();
});
