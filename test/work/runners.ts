import { Registry } from "prom-client";
import { type Bus, createLocalBus } from "../../src/platform/bus.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { createWork, type Work } from "../../src/work/work.ts";
import type { WorkKind } from "../../src/work/work-kind.ts";
import { createWorkRunner, type WorkRunner } from "../../src/work/work-runner.ts";
import { silentLog } from "../support/database.ts";

/** What does work, and what takes it, as several gateways on one database would. */
export interface Runners extends AsyncDisposable {
  readonly work: Work;
  readonly runners: readonly WorkRunner[];
  readonly metrics: Registry;
}

/** Starts some, which hear each other unless their bus is said to lose everything. */
export async function startRunners(
  db: Database,
  kinds: readonly WorkKind<never>[],
  {
    count = 2,
    clock = systemClock,
    hear = true,
    bus = createLocalBus(),
  }: { count?: number; clock?: Clock; hear?: boolean; bus?: Bus } = {},
): Promise<Runners> {
  const metrics = new Registry();
  const parts = { db, bus: hear ? bus : createLocalBus(), clock, log: silentLog, kinds };
  const runners = Array.from({ length: count }, (_, index) =>
    createWorkRunner({ ...parts, metrics: index === 0 ? metrics : new Registry() }),
  );
  for (const runner of runners) await runner.start?.();
  return {
    work: createWork({ bus, clock }),
    runners,
    metrics,
    async [Symbol.asyncDispose]() {
      await Promise.all(runners.map((runner) => runner.stop?.()));
    },
  };
}
