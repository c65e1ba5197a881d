import { expect, test } from "vitest";
import { goThrough } from "./doomed-work.ts";

test("what a killed process had begun is done by another, and nothing else is done twice", async () => {
  const { repeated } = await goThrough({ jobs: 600, lanes: 30, kills: 2 });
  expect(repeated).toBeLessThanOrEqual(2 * 30 * 2);
}, 120_000);
