import { Counter, Histogram, type Registry } from "prom-client";
import type { JobKind } from "../kernel/job-kind.ts";
import type { Part } from "../platform/lifetime.ts";
import { createLimiter } from "../platform/limiter.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import type { RepeatedTask } from "../platform/repeated-job.ts";
import { backlogJobs } from "./backlog.ts";
import { createHeldQueues, type HeldQueuesParts } from "./held-queues.ts";
import { createQueueClaims } from "./queue-claims.ts";
import type { QueueRunParts } from "./queue-run.ts";
import { findDueKinds, freeQueues, queuesAreClaimed, queuesAreDue } from "./store.ts";

/** Maximum concurrent settlement writes of slow and failing queues. Leaves the other connections to healthy queues. */
const slowWrites = 4;

/**
 * Milliseconds to wait for running jobs at shutdown. Jobs still running are aborted, and another gateway runs these
 * jobs again.
 */
const stopTimeout = 5_000;

export interface JobRunnerParts extends HeldQueuesParts, Pick<PlatformParts, "bus" | "metrics"> {
  readonly kinds: readonly JobKind<unknown>[];
}

/** Runs jobs of the given kinds in this gateway, alongside other gateways. */
export interface JobRunner extends Part {
  readonly jobs: readonly RepeatedTask[];
  readonly dueTasks: readonly DueTask[];
}

export function createJobRunner(all: JobRunnerParts): JobRunner {
  const { db, bus, clock, log, kinds } = all;
  const closing = new AbortController();
  const stopping = new AbortController();
  const held = createHeldQueues(all);
  const parts: QueueRunParts = {
    db,
    clock,
    log,
    limiter: createLimiter(slowWrites),
    closing: closing.signal,
    stopping: stopping.signal,
    ...measures(all.metrics),
  };
  const claims = new Map(kinds.map((jobKind) => [jobKind.kind, createQueueClaims(jobKind, held, parts)]));
  const kindNames = [...claims.keys()];
  const free: DueTask = {
    isDue: () => queuesAreClaimed,
    run: () => freeQueues(db),
    failureMessage: "failed to release job queues of ended gateways",
  };
  /** Finds due kinds with one statement, because most kinds have no due queue. */
  const poll: DueTask = {
    isDue: () => queuesAreDue(kindNames, new Date(clock.now())),
    async run() {
      for (const kind of await findDueKinds(db, kindNames, new Date(clock.now()))) claims.get(kind)?.poll();
    },
    failureMessage: "failed to find due job queues",
  };
  let unsubscribe: (() => void) | undefined;
  return {
    jobs: kinds.length === 0 ? [] : backlogJobs(all),
    dueTasks: kinds.length === 0 ? [] : [free, poll],
    async start() {
      await freeQueues(db);
      unsubscribe = bus.subscribe("jobs", (message) => {
        const [kind = "", ...queues] = message.split("\n");
        for (const queue of queues) if (!held.wake(kind, queue)) claims.get(kind)?.wake(queue);
      });
      held.start();
      for (const claim of claims.values()) claim.start();
    },
    async stop() {
      unsubscribe?.();
      closing.abort();
      const ended = new AbortController();
      void clock.sleep(stopTimeout, ended.signal).then(() => stopping.abort());
      await Promise.all([...claims.values()].map((claim) => claim.stop()));
      await Promise.all([...claims.values()].map((claim) => claim.ended()));
      ended.abort();
      await held.stop();
    },
  };
}

function measures(metrics: Registry): Pick<QueueRunParts, "count" | "lag"> {
  const attempts = new Counter({
    name: "pilothouse_jobs_attempts_total",
    help: "Attempts at jobs, by kind and outcome: done, failed, dead (no more retries), lost (stopped, or claimed elsewhere).",
    labelNames: ["kind", "outcome"],
    registers: [metrics],
  });
  const lag = new Histogram({
    name: "pilothouse_jobs_lag_seconds",
    help: "Delay between due time and first attempt of jobs, by kind.",
    labelNames: ["kind"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [metrics],
  });
  return {
    count: (kind, outcome) => attempts.inc({ kind, outcome }),
    lag: (kind, milliseconds) => lag.observe({ kind }, Math.max(0, milliseconds) / 1_000),
  };
}
