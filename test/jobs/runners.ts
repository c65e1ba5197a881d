import { Registry } from "prom-client";
import { createWork, type Work } from "../../src/jobs/work.ts";
import { createWorkRunner, type WorkRunner } from "../../src/jobs/work-runner.ts";
import type { WorkKind } from "../../src/kernel/work-kind.ts";
import { type Bus, createLocalBus } from "../../src/platform/bus.ts";
import type { Clock } from "../../src/platform/clock.ts";
import type { Log } from "../../src/platform/log.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import { createTestClock, type TestClock } from "../support/test-clock.ts";

/** Runners and their job queues, like several gateways on one database. */
export interface Runners extends AsyncDisposable {
  readonly work: Work;
  readonly runners: readonly WorkRunner[];
  readonly metrics: Registry;
  /** Clock of the runners, unless the options set another. */
  readonly clock: TestClock;
}

/** Starts runners that notify each other, unless the options make their bus lose all messages. */
export async function startRunners(
  db: Database,
  kinds: readonly WorkKind<never>[],
  {
    count = 2,
    hear = true,
    bus = createLocalBus(),
    log = silentLog,
    ...options
  }: { count?: number; clock?: Clock; hear?: boolean; bus?: Bus; log?: Log } = {},
): Promise<Runners> {
  const metrics = new Registry();
  const own = createTestClock();
  const { clock = own } = options;
  const parts = { db, bus: hear ? bus : createLocalBus(), clock, log, kinds };
  const runners = Array.from({ length: count }, (_, index) =>
    createWorkRunner({ ...parts, gateway: () => 0, metrics: index === 0 ? metrics : new Registry() }),
  );
  for (const runner of runners) await runner.start?.();
  return {
    work: createWork({ bus, clock }),
    runners,
    metrics,
    clock: own,
    async [Symbol.asyncDispose]() {
      await Promise.all(runners.map((runner) => runner.stop?.()));
    },
  };
}
