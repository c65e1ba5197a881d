import type { JobKind } from "../kernel/job-kind.ts";
import type { Limiter } from "../platform/limiter.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { inNewTrace } from "../platform/traces/spans.ts";
import { createDueJobs } from "./due-jobs.ts";
import type { HeldQueue } from "./held-queues.ts";
import { attempt, type JobOutcome } from "./job-attempt.ts";
import type { JobSlot } from "./job-slots.ts";
import { failingFrom, type StoredJob } from "./store.ts";

/** Milliseconds after which a busy queue releases its slot. A queue in a slow slot keeps its slot. */
const slotMs = 10_000;

/**
 * Milliseconds after which an attempt is slow. If a slow slot is free, the queue moves to this slot and stops delaying
 * quick queues.
 */
const slowAfter = 150;

export interface QueueRunParts extends Pick<PlatformParts, "db" | "clock" | "log"> {
  /** Limits settlement writes of slow and failing queues, since many of their attempts end together. */
  readonly limiter: Limiter;
  /** Aborts when no further job may start. */
  readonly closing: AbortSignal;
  /** Aborts when running jobs must end. */
  readonly stopping: AbortSignal;
  count(kind: string, outcome: JobOutcome): void;
  /** Records the milliseconds between a job's due time and its first attempt. */
  lag(kind: string, milliseconds: number): void;
}

/** A claimed queue with its slot and kind. */
interface SlottedQueue {
  readonly held: HeldQueue;
  readonly slot: JobSlot;
  readonly jobKind: JobKind<unknown>;
}

/**
 * Runs the jobs of a queue. Starts no further job if none is due, `slotMs` has passed, a failing queue finds no failing
 * slot, the lease is lost, or the gateway stops. Resolves when the running jobs have ended. Rejects if jobs cannot be
 * read or an outcome cannot be stored before the lease is lost.
 */
export async function runQueue(queue: SlottedQueue, parts: QueueRunParts): Promise<void> {
  const { held, slot, jobKind } = queue;
  const lost = AbortSignal.any([held.lease, parts.stopping]);
  const slotEnds = performance.now() + slotMs;
  const due = createDueJobs(held, { ...parts, width: jobKind.width });
  const running = new Map<StoredJob, Promise<void>>();
  let { failures } = held;

  function mayBegin(): boolean {
    if (parts.closing.aborted || held.lease.aborted || running.size >= jobKind.width) return false;
    if (failures >= failingFrom && !slot.move("failing")) return false;
    return slot.kind === "slow" || performance.now() < slotEnds;
  }

  async function run(job: StoredJob): Promise<void> {
    const outcome = await runJob(queue, job, { ...parts, lost }).finally(() => running.delete(job));
    failures = outcome === "done" ? 0 : failures + 1;
  }

  async function beginDue(): Promise<void> {
    while (mayBegin()) {
      const job = await due.next(() => [...running.keys()]);
      if (!job) return;
      running.set(job, run(job));
    }
  }

  try {
    for (;;) {
      const jobAdded = held.jobAdded();
      await beginDue();
      if (running.size === 0) return;
      await Promise.race([...running.values(), ...(mayBegin() ? [jobAdded] : [])]);
    }
  } finally {
    await Promise.allSettled(running.values());
  }
}

interface JobRunParts extends QueueRunParts {
  /** Aborts when the gateway stops or loses the queue's lease. */
  readonly lost: AbortSignal;
}

async function runJob({ held, slot, jobKind }: SlottedQueue, job: StoredJob, parts: JobRunParts): Promise<JobOutcome> {
  const timer = setTimeout(() => slot.kind === "healthy" && slot.move("slow"), slowAfter);
  if (job.attempts === 0) parts.lag(jobKind.kind, parts.clock.now() - job.due_at.getTime());
  const limitWrites: Limiter = (write) => (slot.kind === "healthy" ? write() : parts.limiter(write));
  const about = { kind: "consumer", attributes: { "pilothouse.job.attempt": job.attempts + 1 } } as const;
  const outcome = await inNewTrace(`job ${jobKind.kind}`, about, async (span) => {
    const ended = await attempt(held, job, jobKind, { ...parts, limitWrites });
    span?.set({ "pilothouse.job.outcome": ended });
    return ended;
  }).finally(() => clearTimeout(timer));
  parts.count(jobKind.kind, outcome);
  return outcome;
}
