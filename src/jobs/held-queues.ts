import type { Database } from "../platform/postgres/database.ts";
import { createRepeatedJob, type RepeatedJobParts } from "../platform/repeated-job.ts";
import { type ClaimedQueue, renewLeases } from "./store.ts";

/** Duration of a lease in milliseconds. */
const leaseMs = 8_000;

/** Age in milliseconds from which a lease is renewed. */
const renewAfter = 2_000;

/**
 * Milliseconds between renewals. Each run renews only the older leases, because one large batch would delay other
 * statements.
 */
const renewEvery = 250;

/** A claimed queue with its lease. */
export interface HeldQueue extends ClaimedQueue {
  /** Aborts when the lease was lost or may have expired. */
  readonly lease: AbortSignal;
  /** Resolves at the next notification of a job added to the queue. */
  jobAdded(): Promise<void>;
}

/** Queues claimed by this gateway. Renews their leases. */
export interface HeldQueues {
  /** Lease duration of new claims in milliseconds. */
  readonly leaseMs: number;
  /** Returns the number of the gateway's lock, or 0 while the lock is not held. */
  gateway(): number;
  /** Registers a queue claimed by a statement sent at `sentAt`, in milliseconds of `performance.now()`. */
  add(queue: ClaimedQueue, sentAt: number): HeldQueue;
  remove(queue: HeldQueue): void;
  /** Notifies the queue's runner of an added job. Returns whether this gateway holds the queue. */
  wake(kind: string, queue: string): boolean;
  start(): void;
  stop(): Promise<void>;
}

interface Entry {
  readonly held: HeldQueue;
  /** Records a renewal sent at `sentAt` and restarts the expiry timer. */
  renewed(sentAt: number): void;
  isOld(): boolean;
  lose(): void;
  notify(): void;
  close(): void;
}

/** Creates an entry. The lease counts as lost at least a second before another gateway may claim the queue. */
function makeEntry(queue: ClaimedQueue, sentAt: number): Entry {
  const lease = new AbortController();
  const lose = (): void => lease.abort(new Error("the lease of the job queue has expired"));
  let timer: NodeJS.Timeout;
  let jobAdded = Promise.withResolvers<void>();
  let leasedAt: number;
  const renewed = (sentAt: number): void => {
    clearTimeout(timer);
    leasedAt = sentAt;
    timer = setTimeout(lose, sentAt + leaseMs - 1_000 - performance.now());
  };
  renewed(sentAt);
  return {
    held: { ...queue, lease: lease.signal, jobAdded: () => jobAdded.promise },
    renewed,
    isOld: () => performance.now() - leasedAt >= renewAfter,
    lose,
    notify() {
      jobAdded.resolve();
      jobAdded = Promise.withResolvers();
    },
    close: () => clearTimeout(timer),
  };
}

export interface HeldQueuesParts extends RepeatedJobParts {
  readonly db: Database;
  readonly gateway: () => number;
}

export function createHeldQueues({ db, gateway, ...parts }: HeldQueuesParts): HeldQueues {
  const byName = new Map<string, Entry>();
  const nameOf = (kind: string, queue: string): string => `${kind} ${queue}`;

  async function renew(): Promise<void> {
    const entries = [...byName.values()].filter(({ isOld }) => isOld());
    if (entries.length === 0) return;
    const sentAt = performance.now();
    const claims = entries.map(({ held }) => held.claim);
    const validClaims = new Set(await renewLeases(db, claims, leaseMs));
    for (const { held, renewed, lose } of entries) validClaims.has(held.claim) ? renewed(sentAt) : lose();
  }

  return {
    leaseMs,
    gateway,
    add(queue, sentAt) {
      const entry = makeEntry(queue, sentAt);
      byName.set(nameOf(queue.kind, queue.queue), entry);
      return entry.held;
    },
    remove({ kind, queue, claim }) {
      const entry = byName.get(nameOf(kind, queue));
      if (entry?.held.claim !== claim) return;
      byName.delete(nameOf(kind, queue));
      entry.close();
    },
    wake(kind, queue) {
      const entry = byName.get(nameOf(kind, queue));
      entry?.notify();
      return entry !== undefined;
    },
    ...createRepeatedJob({ run: renew, every: renewEvery, failureMessage: "failed to renew job leases" }, parts),
  };
}
