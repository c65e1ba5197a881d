import { expect, test } from "vitest";
import { goThrough } from "./doomed-jobs.ts";

test("20,000 jobs survive eight kills without loss or stalls, and only kills cause repeats", async () => {
  const { repeated, seconds } = await goThrough({ jobs: 20_000, queues: 100, kills: 8 });
  console.log(`20,000 jobs with eight kills took ${seconds.toFixed(1)} s, and ${repeated} were done twice`);
  expect(repeated).toBeLessThanOrEqual(8 * 100 * 2);
}, 600_000);
