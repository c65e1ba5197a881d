import { expect, test } from "vitest";
import { createIds } from "../../src/platform/ids.ts";

test("ids sort by time, and by creation order within a millisecond or after the clock steps back", () => {
  let now = 1_700_000_000_000;
  const ids = createIds({ now: () => now });
  const made: string[] = [];
  for (const step of [0, 0, 1, -5, 0, 1_000]) {
    now += step;
    made.push(ids.next("ses"));
  }
  expect([...made].sort()).toEqual(made);
  expect(new Set(made).size).toBe(made.length);
  for (const id of made) expect(id).toMatch(/^ses_[0-9a-hjkmnp-tv-z]{26}$/);
});

test("ids start with the time part of a ULID", () => {
  const ids = createIds({ now: () => 1_469_918_176_385 });
  // Example of github.com/ulid/spec: 1469918176385 is 01ARYZ6S41.
  expect(ids.next("evt").slice(0, 14)).toBe("evt_01aryz6s41");
});
