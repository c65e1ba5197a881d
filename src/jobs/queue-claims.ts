import type { JobKind } from "../kernel/job-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import { IdleMap } from "../platform/idle-map.ts";
import { createRepeatedJob, type RepeatedJob } from "../platform/repeated-job.ts";
import type { HeldQueues } from "./held-queues.ts";
import { createJobSlots } from "./job-slots.ts";
import { type QueueRunParts, runQueue } from "./queue-run.ts";
import { type ClaimedQueue, claimNamedQueues, claimQueues, failingFrom, releaseQueue } from "./store.ts";

/**
 * Milliseconds between claims of quick queues that could not be claimed at once. The bus only reduces latency:
 * `JobRunner` polls for due queues, and so finds the jobs of lost messages.
 */
const pollEvery = 1_000;

/**
 * Maximum number of queues of a kind that a gateway runs at once. Slow and failing queues have their own slots, so that
 * they do not delay healthy queues. Each slot costs some sockets.
 */
const slotCounts = { healthy: 128, slow: 1_024, failing: 128 };

/**
 * Healthy slots reserved for owners without a running queue. Further queues of an owner share the remaining slots, so
 * that hanging queues of one owner cannot take all slots.
 */
const reservedSlots = 120;

/** Maximum number of queues per claim, for healthy and failing queues each. Small batches keep each claim short. */
const batch = 8;

/**
 * Claiming among 1,000 due queues takes PostgreSQL 7 ms, and each freed slot triggers a claim. While due queues wait
 * for slots, claiming pauses for `times` the duration of the last claim, at most `maxMs` milliseconds.
 */
const pollRest = { times: 9, maxMs: 100 };

/**
 * Milliseconds for which a queue counts as quick after a healthy run. New jobs of a quick queue are claimed by name,
 * independently of polling.
 */
const quickFor = 3_600_000;

/** Claims and runs the queues of one kind. */
export interface QueueClaims extends Pick<RepeatedJob, "start"> {
  /** Notifies of a new job in a queue. */
  wake(queue: string): void;
  /** Starts a claim from all due queues. */
  poll(): void;
  /** Stops claiming. Running queues continue. */
  stop(): Promise<void>;
  /** Resolves when no queue is running. */
  ended(): Promise<unknown>;
}

export function createQueueClaims(jobKind: JobKind<unknown>, held: HeldQueues, parts: QueueRunParts): QueueClaims {
  const { db, clock, log } = parts;
  const { kind } = jobKind;
  const counts = jobKind.queues === undefined ? slotCounts : { ...slotCounts, healthy: jobKind.queues };
  const reserved = jobKind.queues === undefined ? reservedSlots : 0;
  /** Whether due queues may be waiting for a slot. */
  let isShort = false;
  const slots = createJobSlots(counts, () => {
    if (isShort) void polling.runNow();
    if (preferred.size > 0) void quickClaims.runNow();
  });
  const quick = new IdleMap<string, true>(quickFor);
  const preferred = new Set<string>();
  const running = new Set<Promise<void>>();

  async function run(claimed: ClaimedQueue, sentAt: number): Promise<void> {
    const { queue, owner, failures } = claimed;
    const slot = slots.take(failures < failingFrom ? "healthy" : "failing", owner ?? queue);
    const heldQueue = held.add(claimed, sentAt);
    try {
      await runQueue({ held: heldQueue, slot, jobKind }, parts);
      if (slot.kind === "healthy") quick.set(queue, true);
      else quick.delete(queue);
      const dueAt = await releaseQueue(db, heldQueue, new Date(clock.now()));
      if (dueAt !== null && dueAt.getTime() <= clock.now()) void polling.runNow();
    } catch (error) {
      log.warn({ err: error, kind }, "failed to run or release a job queue");
    } finally {
      held.remove(heldQueue);
      slot.release();
    }
  }

  function runAll(queues: readonly ClaimedQueue[], sentAt: number): void {
    for (const queue of queues) {
      const ran = run(queue, sentAt).finally(() => running.delete(ran));
      running.add(ran);
    }
  }

  const terms = () => ({ kind, now: new Date(clock.now()), gateway: held.gateway(), leaseMs: held.leaseMs });

  /** Claims quick queues with new jobs, ahead of other due queues. */
  async function claimQuick(): Promise<void> {
    const limit = Math.min(batch, slots.free("healthy"));
    if (preferred.size === 0 || limit <= 0) return;
    const sentAt = performance.now();
    const queues = [...preferred].slice(0, limit);
    for (const queue of queues) preferred.delete(queue);
    runAll(await claimNamedQueues(db, { ...terms(), queues, limit }), sentAt);
    if (preferred.size > 0) void quickClaims.runNow();
  }

  /** Claims from all due queues. */
  async function poll(): Promise<void> {
    const sentAt = performance.now();
    const [healthy, failing] = [slots.free("healthy"), slots.free("failing")];
    const { queues, waiting } = await claimQueues(db, {
      ...terms(),
      busy: slots.busy(),
      failing: Math.min(batch, failing),
      healthy: Math.min(batch, healthy),
      second: Math.min(batch, healthy - reserved),
    });
    isShort = queues.length < waiting || healthy <= reserved || failing === 0;
    runAll(queues, sentAt);
    if (queues.length >= batch) void polling.runNow();
    else if (isShort) {
      const took = performance.now() - sentAt;
      await sleep(Math.min(pollRest.times * took, pollRest.maxMs), parts.closing);
    }
  }

  const failureMessage = "failed to claim jobs";
  const quickClaims = createRepeatedJob({ run: claimQuick, every: pollEvery, failureMessage }, parts);
  const polling = createRepeatedJob({ run: poll, every: pollEvery, failureMessage }, parts);
  return {
    start: quickClaims.start,
    poll: () => void polling.runNow(),
    async stop() {
      await Promise.all([quickClaims.stop(), polling.stop()]);
    },
    ended: () => Promise.all(running),
    wake(queue) {
      if (!quick.get(queue)) return void polling.runNow();
      preferred.add(queue);
      void quickClaims.runNow();
    },
  };
}
