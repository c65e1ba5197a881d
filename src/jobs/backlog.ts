import { Gauge } from "prom-client";
import type { JobKind } from "../kernel/job-kind.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { RepeatedTask } from "../platform/repeated-job.ts";
import { deleteInBatches, sweepTask } from "../platform/sweep-task.ts";
import { deleteOldDeadLetters, readBacklogs } from "./store.ts";

export interface BacklogParts extends Pick<PlatformParts, "db" | "clock" | "metrics"> {
  readonly kinds: readonly JobKind<unknown>[];
}

/** Returns the repeated jobs that measure the backlog of each kind and delete old dead letters. */
export function backlogJobs({ db, clock, metrics, kinds }: BacklogParts): RepeatedTask[] {
  const labelNames = ["kind"];
  const oldest = new Gauge({
    name: "pilothouse_jobs_oldest_due_seconds",
    help: "Time that the oldest due job has waited, by kind.",
    labelNames,
    registers: [metrics],
  });
  const dead = new Gauge({
    name: "pilothouse_jobs_dead_letters",
    help: "Jobs that failed without further attempts in the last 30 days, by kind.",
    labelNames,
    registers: [metrics],
  });
  const names = kinds.map(({ kind }) => kind);

  async function measure(): Promise<void> {
    for (const backlog of await readBacklogs(db, names, new Date(clock.now()))) {
      const { kind, due_at: dueAt } = backlog;
      oldest.set({ kind }, dueAt ? Math.max(0, clock.now() - dueAt.getTime()) / 1_000 : 0);
      dead.set({ kind }, backlog.dead);
    }
  }

  async function sweep(): Promise<void> {
    const now = new Date(clock.now());
    for (const kind of names) await deleteInBatches((limit) => deleteOldDeadLetters(db, kind, now, limit));
  }

  return [
    { run: measure, every: 5_000, failureMessage: "failed to read the job backlog" },
    sweepTask(sweep, "failed to delete old dead letters"),
  ];
}
