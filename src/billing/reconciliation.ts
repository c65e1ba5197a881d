import type { JobQueues } from "../jobs/job-queues.ts";
import type { CreatedFeature } from "../kernel/feature.ts";
import type { Arrangements } from "../limits/arrangements.ts";
import { findDueAccounts, grantsAreDue, listSandboxGrants } from "../limits/paid-store.ts";
import { endGrant } from "../limits/paid-time.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { type CardJob, cardJob } from "./card-sync.ts";
import type { Processors } from "./processors.ts";
import {
  checkoutsAreDue,
  claimUnreconciled,
  deleteProcessorWebhooksBefore,
  findDueCheckouts,
  setCheckAt,
} from "./store.ts";

export interface ReconciliationParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly jobQueues: JobQueues;
  readonly arrangements: Arrangements;
  readonly processors: Processors;
}

const minute = 60_000;
const day = 1_440 * minute;

/** Milliseconds after the start of a checkout at which the processor is polled for its outcome. */
export const checkDelays = [1, 5, 15, 60].map((minutes) => minutes * minute);

/** Creates the tasks that poll the card processor, in case webhooks are lost, and that end expired paid tiers. */
export function createReconciliation(parts: ReconciliationParts): Pick<CreatedFeature, "jobs" | "dueTasks"> {
  const { db, clock, jobQueues, arrangements, processors } = parts;
  const { card, countsSandbox } = processors;

  async function endDue(): Promise<void> {
    const now = clock.now();
    for (const accountId of await findDueAccounts(db, new Date(now), !countsSandbox))
      await db.transaction(async (tx) => {
        const ended = countsSandbox ? [] : await listSandboxGrants(tx, accountId);
        await arrangements.updateGrants(tx, accountId, {
          sandbox: false,
          apply: (time) => ended.reduce((at, id) => endGrant(at, id, now), time),
        });
      });
  }

  async function reconcileCheckouts(): Promise<void> {
    const now = clock.now();
    for (const { id, customer_id: queue, created_at: openedAt } of await findDueCheckouts(db, new Date(now)))
      await db.transaction(async (tx) => {
        const next = checkDelays.map((wait) => openedAt.getTime() + wait).find((at) => at > now);
        setCheckAt(tx, id, next === undefined ? null : new Date(next));
        jobQueues.enqueue(tx, cardJob, { queue, data: {} });
      });
  }

  async function reconcileCustomers(): Promise<void> {
    if (!card) return;
    const now = clock.now();
    await db.transaction(async (tx) => {
      const queues = await claimUnreconciled(tx, new Date(now - day), new Date(now), card.isSandbox);
      const sorted = queues.toSorted();
      jobQueues.enqueueAll(
        tx,
        cardJob,
        sorted.map((queue) => ({ queue, data: { reconciles: true } satisfies CardJob })),
      );
    });
    await deleteProcessorWebhooksBefore(db, new Date(now - 60 * day));
  }

  const jobs = [{ run: reconcileCustomers, every: 60_000, failureMessage: "failed to reconcile subscriptions" }];
  const dueTasks = [
    {
      isDue: () => grantsAreDue(new Date(clock.now()), !countsSandbox),
      run: endDue,
      failureMessage: "failed to end expired paid tiers",
    },
    {
      isDue: () => checkoutsAreDue(new Date(clock.now())),
      run: reconcileCheckouts,
      failureMessage: "failed to schedule polls of checkouts",
    },
  ];
  return { jobs, dueTasks };
}
