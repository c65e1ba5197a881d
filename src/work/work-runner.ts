import { Counter, type Registry } from "prom-client";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import { unlessLate } from "../platform/deadline.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { Database } from "../platform/postgres/database.ts";
import { createRepeatedJob, type RepeatedJob, type RepeatedWork } from "../platform/repeated-job.ts";
import { backlogJobs } from "./backlog.ts";
import { createHeldLanes } from "./held-lanes.ts";
import { type LaneRunParts, runLane } from "./lane-run.ts";
import { type ClaimedLane, claimLanes, failingFrom, releaseLane } from "./store.ts";
import type { WorkKind } from "./work-kind.ts";

/** Milliseconds. The bus only wakes: whatever it loses, and what has become due, is found once a second. */
const pollEvery = 1_000;

/** Lanes of a kind that a gateway runs at once. Those that fail have places of their own, so that many of them hold up no others. */
const places = { sound: 32, failing: 8 };

/** Milliseconds that jobs have to end when the gateway is stopped; then they are another's. */
const stopPatience = 5_000;

export interface WorkRunnerParts {
  readonly db: Database;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Registry;
  readonly kinds: readonly WorkKind<unknown>[];
}

/** Does the work of some kinds in this gateway, beside what others do of it. */
export interface WorkRunner extends Part {
  /** What is looked at from time to time. */
  readonly jobs: readonly RepeatedWork[];
}

/** Makes the runner. */
export function createWorkRunner(all: WorkRunnerParts): WorkRunner {
  const { db, bus, clock, log, metrics, kinds } = all;
  const closing = new AbortController();
  const stopping = new AbortController();
  const held = createHeldLanes(db, log);
  const running = new Set<Promise<void>>();
  const attempts = new Counter({
    name: "pilothouse_work_attempts_total",
    help: "Attempts at jobs, by kind and outcome: done, failed, dead (nobody tries again), lost (told to stop, or too late).",
    labelNames: ["kind", "outcome"],
    registers: [metrics],
  });
  const parts: LaneRunParts = {
    ...{ db, clock, log, closing: closing.signal, stopping: stopping.signal },
    count: (kind, outcome) => attempts.inc({ kind, outcome }),
  };

  function createClaims(work: WorkKind<unknown>): RepeatedJob {
    const free = { ...places };

    async function hold(claimed: ClaimedLane, askedAt: number): Promise<void> {
      const place = claimed.failures < failingFrom ? "sound" : "failing";
      const lane = held.add(claimed, askedAt);
      free[place] -= 1;
      try {
        await runLane(lane, work, parts);
        const dueAt = await releaseLane(db, lane, new Date(clock.now()));
        if (dueAt !== null && dueAt.getTime() <= clock.now()) claims.hurry();
      } finally {
        held.remove(lane);
        // Another lane may have waited for the place.
        if (free[place] === 0) claims.hurry();
        free[place] += 1;
      }
    }

    async function claim(): Promise<void> {
      const askedAt = performance.now();
      const lanes = await claimLanes(db, work.kind, new Date(clock.now()), free, held.leaseMs);
      for (const lane of lanes) {
        const run = hold(lane, askedAt)
          .catch((error: unknown) =>
            log.warn({ err: error, kind: work.kind }, "a lane of work was not let go in order"),
          )
          .finally(() => running.delete(run));
        running.add(run);
      }
    }

    const claims = createRepeatedJob({ run: claim, every: pollEvery, complaint: "work cannot be claimed" }, log);
    return claims;
  }

  const claims = new Map(kinds.map((work) => [work.kind, createClaims(work)]));
  let unsubscribe: (() => void) | undefined;
  return {
    jobs: kinds.length === 0 ? [] : backlogJobs(all),
    start() {
      unsubscribe = bus.subscribe("work", (message) => {
        const [kind = "", ...lane] = message.split(" ");
        if (!held.wake(kind, lane.join(" "))) claims.get(kind)?.hurry();
      });
      held.start();
      for (const claim of claims.values()) claim.start();
    },
    async stop() {
      unsubscribe?.();
      closing.abort();
      await Promise.all([...claims.values()].map((claim) => claim.stop()));
      const ended = () => Promise.all([...running]);
      await unlessLate(ended(), stopPatience, () => stopping.abort());
      await ended();
      await held.stop();
    },
  };
}
