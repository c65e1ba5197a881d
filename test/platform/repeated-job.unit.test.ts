import { expect, test } from "vitest";
import { createRepeatedJob } from "../../src/platform/repeated-job.ts";
import { silentLog } from "../support/database.ts";
import { createTestClock } from "../support/test-clock.ts";

test("runs a job when it is due, once more for all concurrent requests, and not after it is stopped", async () => {
  const clock = createTestClock();
  const runs: PromiseWithResolvers<void>[] = [];
  const run = () => {
    const lasting = Promise.withResolvers<void>();
    runs.push(lasting);
    return lasting.promise;
  };
  const job = createRepeatedJob({ run, every: 600_000, failureMessage: "failed to run" }, { clock, log: silentLog });
  job.start();
  expect(runs).toHaveLength(0);
  for (const count of [2, 4]) {
    clock.advance(600_000);
    const asked = [job.runNow(), job.runNow()];
    clock.advance(600_000);
    expect(runs).toHaveLength(count - 1);
    runs.at(-1)?.reject(new Error("refused"));
    await expect.poll(() => runs.length).toBe(count);
    runs.at(-1)?.resolve();
    await Promise.all(asked);
  }
  await job.stop();
  clock.advance(600_000);
  await job.runNow();
  expect(runs).toHaveLength(4);
});
