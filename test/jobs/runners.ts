import { Registry } from "prom-client";
import { createJobQueues, type JobQueues } from "../../src/jobs/job-queues.ts";
import { createJobRunner, type JobRunner } from "../../src/jobs/job-runner.ts";
import type { JobKind } from "../../src/kernel/job-kind.ts";
import { type Bus, createLocalBus } from "../../src/platform/bus.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { Log } from "../../src/platform/log.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { createDueTasks } from "../../src/platform/postgres/due-tasks.ts";
import { silentLog } from "../support/database.ts";
import { createTestClock, type TestClock } from "../support/test-clock.ts";

/** Runners and their job queues, like several gateways on one database. */
export interface Runners extends AsyncDisposable {
  readonly jobQueues: JobQueues;
  readonly runners: readonly JobRunner[];
  readonly metrics: Registry;
  /** Clock of the runners, unless the options set another. */
  readonly clock: TestClock;
}

/** Starts runners that notify each other, unless the options make their bus lose all messages. */
export async function startRunners(
  db: Database,
  kinds: readonly JobKind<never>[],
  {
    count = 2,
    isListening = true,
    bus = createLocalBus(),
    log = silentLog,
    ...options
  }: { count?: number; clock?: Clock; isListening?: boolean; bus?: Bus; log?: Log } = {},
): Promise<Runners> {
  const metrics = new Registry();
  const own = createTestClock();
  const { clock = own } = options;
  const parts = { db, bus: isListening ? bus : createLocalBus(), clock, log, kinds };
  const runners = Array.from({ length: count }, (_, index) =>
    createJobRunner({ ...parts, gateway: () => 0, metrics: index === 0 ? metrics : new Registry() }),
  );
  const polls = runners.map(({ dueTasks }) => createDueTasks(dueTasks, parts));
  for (const part of [...runners, ...polls]) await part.start?.();
  return {
    jobQueues: createJobQueues({ bus, clock }),
    runners,
    metrics,
    clock: own,
    async [Symbol.asyncDispose]() {
      await Promise.all(polls.map((poll) => poll.stop?.()));
      await Promise.all(runners.map((runner) => runner.stop?.()));
    },
  };
}
