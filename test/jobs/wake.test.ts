import { afterAll, beforeAll, expect, test } from "vitest";
import { createJobQueues } from "../../src/jobs/job-queues.ts";
import { defineJob } from "../../src/kernel/job-kind.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { connectBus } from "../support/connect-bus.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { RedisServer } from "../support/redis-server.ts";
import { startRunners } from "./runners.ts";

const rounds = 41;

let database: TestDatabase;
let redis: RedisServer;
beforeAll(async () => {
  [database, redis] = await Promise.all([startTestDatabase(), RedisServer.start()]);
}, 60_000);
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

test("a job added by one gateway starts immediately on another, notified over Redis", async () => {
  let begin = (_at: number): void => undefined;
  const kind = defineJob<{ readonly round: number }>({
    kind: "wake",
    width: 1,
    schedule: [],
    timeout: 60_000,
    run: async () => begin(performance.now()),
  });
  const adder = createJobQueues({ bus: await connectBus(redis), clock: systemClock });
  await using _runners = await startRunners(database.db, [kind], { count: 1, bus: await connectBus(redis) });
  const waits: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begun = new Promise<number>((resolve) => {
      begin = resolve;
    });
    await database.db.transaction(async (tx) => adder.enqueue(tx, kind, { queue: "one", data: { round } }));
    const committedAt = performance.now();
    waits.push((await begun) - committedAt);
  }
  // Takes milliseconds on an idle machine. Polling alone would take a second for each job.
  const median = waits.toSorted((a, b) => a - b)[(rounds - 1) / 2];
  expect(median).toBeLessThan(500);
}, 90_000);
