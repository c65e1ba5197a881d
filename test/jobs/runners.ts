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

/** What does work, and what takes it, as several gateways on one database would. */
export interface Runners extends AsyncDisposable {
  readonly work: Work;
  readonly runners: readonly WorkRunner[];
  readonly metrics: Registry;
  /** Their clock, unless they were given another. */
  readonly clock: TestClock;
}

/** Starts some, which hear each other unless their bus is said to lose everything. */
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
