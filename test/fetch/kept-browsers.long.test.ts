import { expect, test } from "vitest";
import { startFetchScene } from "../support/fetch-scene.ts";

test("a browser without a fetch is closed after 20 s", async () => {
  await using scene = await startFetchScene(1);
  await scene.fetchBy("b1", "one");
  const beganAt = performance.now();
  expect([scene.fetches.spare, scene.slots.free]).toEqual([1, 0]);
  await expect.poll(() => scene.slots.free, { timeout: 40_000 }).toBe(1);
  expect(performance.now() - beganAt).toBeGreaterThan(19_000);
});
