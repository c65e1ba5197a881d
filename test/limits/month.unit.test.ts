import { expect, test } from "vitest";
import { monthAt, monthNamed, splitByDay } from "../../src/limits/month.ts";

const at = (time: string): number => Date.parse(`${time}Z`);

test("finds the UTC month of a time and of a name", () => {
  const december = { name: "2026-12", startsAt: at("2026-12-01T00:00"), endsAt: at("2027-01-01T00:00") };
  for (const time of ["2026-12-01T00:00:00.000", "2026-12-31T23:59:59.999"])
    expect(monthAt(at(time))).toEqual(december);
  expect(monthNamed("2026-12")).toEqual(december);
  expect(monthNamed("2028-02").endsAt).toBe(at("2028-03-01T00:00"));
});

const spans: [from: string, to: string, parts: [day: string, ms: number][]][] = [
  ["2026-11-22T10:00:00.000", "2026-11-22T10:00:00.001", [["2026-11-22", 1]]],
  ["2026-11-22T00:00:00.000", "2026-11-23T00:00:00.000", [["2026-11-22", 86_400_000]]],
  [
    "2026-11-30T23:59:59.500",
    "2026-12-02T00:00:00.250",
    [
      ["2026-11-30", 500],
      ["2026-12-01", 86_400_000],
      ["2026-12-02", 250],
    ],
  ],
  ["2026-11-22T10:00:00.000", "2026-11-22T10:00:00.000", []],
];

test.each(spans)("splits the time from %s to %s at midnight", (from, to, parts) => {
  expect(splitByDay(at(from), at(to))).toEqual(parts.map(([day, ms]) => ({ day, ms })));
});
