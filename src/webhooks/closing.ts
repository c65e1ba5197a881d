import { listManagers } from "../accounts/memberships.ts";
import { findAccount } from "../accounts/store.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import type { AuditLog } from "../kernel/call.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import { type DeliveryJob, deliveryJob } from "./delivery-queue.ts";
import { giveUp } from "./delivery-settlement.ts";
import { closeFailing, endpointsAreFailing, findFailing, findInactiveReason } from "./endpoint-store.ts";

/** Job kind that gives up the deliveries of inactive and deleted endpoints, with one queue partition per endpoint. */
const closingJob = { kind: "webhook-closing" } as const;

/** Maximum deliveries given up per transaction. */
const slice = 1_000;

const second = 1_000;
const hour = 3_600 * second;

/**
 * Milliseconds. An endpoint is deactivated `forMs` after the first failure since its last 2xx response, if the first
 * and the last failure are at least `apartMs` apart. A single incident is therefore not enough.
 */
const failing = { forMs: 120 * hour, apartMs: 12 * hour };

/** Schedules giving up an endpoint's open deliveries, in the transaction that deactivates or deletes the endpoint. */
export function endDeliveries(jobQueues: JobQueues, tx: Tx, endpointId: string): void {
  jobQueues.enqueue(tx, closingJob, { queue: endpointId, data: {} });
}

export interface ClosingParts extends Pick<PlatformParts, "db" | "clock"> {
  readonly jobQueues: JobQueues;
  readonly mailer: Mailer;
  readonly audit: AuditLog;
}

/** Creates the job kind scheduled by `endDeliveries`. */
export function createClosingJob({ db, jobQueues }: Pick<ClosingParts, "db" | "jobQueues">): JobKind<object> {
  const endSome = (endpointId: string) =>
    db.transaction(async (tx) => {
      const reason = await findInactiveReason(tx, endpointId);
      // The endpoint was activated again after the job was scheduled.
      if (!reason) return 0;
      const jobs = await jobQueues.drop<DeliveryJob>(tx, deliveryJob, endpointId, slice);
      giveUp(
        tx,
        jobs.map(({ deliveryId }) => deliveryId),
        reason,
      );
      return jobs.length;
    });
  return defineJob({
    ...closingJob,
    width: 1,
    timeout: 60 * second,
    schedule: [second, 10 * second, 60 * second, hour],
    async run({ queue }) {
      while ((await endSome(queue)) === slice);
    },
  });
}

/**
 * Creates the task that deactivates endpoints that have failed for too long, and e-mails the managers of their
 * accounts.
 */
export function createFailingWatch({ db, clock, jobQueues, mailer, audit }: ClosingParts): DueTask {
  async function mailManagers(tx: Tx, accountId: string, url: string): Promise<void> {
    const { name: accountName } = await findAccount(tx, accountId);
    const subject = "A webhook was deactivated";
    const lines = [
      `The webhook ${url} of the account ${accountName} has failed for 5 days. It was deactivated and receives no more events.`,
      "To use it again, open Webhooks in the console. Failed deliveries are kept for 30 days, so that you can send them again.",
    ];
    for (const manager of await listManagers(tx, accountId))
      await mailer.send(tx, mailTo(manager, { kind: "webhook_failures", subject, lines }));
  }

  async function close(id: string, since: Date): Promise<void> {
    await db.transaction(async (tx) => {
      const closed = await closeFailing(tx, { id, since, at: new Date(clock.now()), apartMs: failing.apartMs });
      if (!closed) return;
      const { account_id: accountId, url } = closed;
      const data = { url, reason: "failing" };
      audit.record(tx, { accountId, actor: { kind: "service" }, action: "webhook.deactivate", subject: id, data });
      endDeliveries(jobQueues, tx, id);
      await mailManagers(tx, accountId, url);
    });
  }

  const failingSince = () => new Date(clock.now() - failing.forMs);
  return {
    isDue: () => endpointsAreFailing(failingSince(), failing.apartMs),
    async run() {
      const since = failingSince();
      for (const id of await findFailing(db, since, failing.apartMs)) await close(id, since);
    },
    failureMessage: "failed to check failing webhooks",
  };
}
