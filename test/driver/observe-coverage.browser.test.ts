import { afterAll, beforeAll, expect, test } from "vitest";
import { launchComparison, observedPages } from "../support/aria-comparison.ts";

let comparison: Awaited<ReturnType<typeof launchComparison>>;

beforeAll(async () => {
  comparison = await launchComparison();
});

afterAll(async () => {
  await comparison?.[Symbol.asyncDispose]();
});

test.each(observedPages)("references all that reacts in the view of the page %s", { timeout: 60_000 }, async (name) => {
  const { tokens, actionable, lost } = await comparison.compare(name, false);
  expect(lost).toEqual([]);
  expect(actionable).toBeGreaterThan(10);
  expect(tokens.ours / tokens.theirs).toBeLessThanOrEqual(0.7);
});
