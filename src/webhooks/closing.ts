import { listManagers } from "../accounts/memberships.ts";
import { findAccount } from "../accounts/store.ts";
import type { Work } from "../jobs/work.ts";
import type { AuditLog } from "../kernel/call.ts";
import { defineWork, type WorkKind } from "../kernel/work-kind.ts";
import { mailTo } from "../mail/mail.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Clock } from "../platform/clock.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import type { RepeatedWork } from "../platform/repeated-job.ts";
import { type DeliveryJob, deliveryWork } from "./delivery-queue.ts";
import { giveUp } from "./delivery-settlement.ts";
import { closeFailing, findFailing, whyClosed } from "./endpoint-store.ts";

/** What ends the deliveries of endpoints that are closed. Its lanes are endpoints, too. */
const closingWork = { kind: "webhook-closing" } as const;

/** Deliveries that are given up with one transaction. */
const slice = 1_000;

const second = 1_000;
const hour = 3_600 * second;

/** An endpoint without any 2xx for 5 days is closed when its failures are so far apart that they were no single mishap. */
const failing = { forMs: 120 * hour, apartMs: 12 * hour };

/** Asks for the end of what is still to be sent to an endpoint, in the transaction that closes or deletes it. */
export function endDeliveries(work: Work, tx: Tx, endpointId: string): void {
  work.enqueue(tx, closingWork, { lane: endpointId, data: {} });
}

export interface ClosingParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly work: Work;
  readonly mailer: Mailer;
  readonly audit: AuditLog;
}

/** Makes the work that `endDeliveries` asks for. */
export function createClosingWork({ db, work }: Pick<ClosingParts, "db" | "work">): WorkKind<object> {
  const endSome = (endpointId: string) =>
    db.transaction(async (tx) => {
      const reason = await whyClosed(tx, endpointId);
      // It may be active again.
      if (!reason) return 0;
      const jobs = await work.drop<DeliveryJob>(tx, deliveryWork, endpointId, slice);
      giveUp(
        tx,
        jobs.map(({ deliveryId }) => deliveryId),
        reason,
      );
      return jobs.length;
    });
  return defineWork({
    ...closingWork,
    ...{ width: 1, timeout: 60 * second, schedule: [second, 10 * second, 60 * second, hour] },
    async run({ lane }) {
      while ((await endSome(lane)) === slice);
    },
  });
}

/** Makes what closes endpoints that have failed for too long, and tells their owners. */
export function createFailingWatch({ db, clock, work, mailer, audit }: ClosingParts): RepeatedWork {
  async function mailManagers(tx: Tx, accountId: string, url: string): Promise<void> {
    const { name: accountName } = await findAccount(tx, accountId);
    const subject = "A webhook was made inactive";
    const lines = [
      `The webhook ${url} of the account ${accountName} has failed for 5 days. It was made inactive, and is sent no events.`,
      "What could not be delivered is kept for 30 days. Make the webhook active again, then replay what has failed.",
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
      endDeliveries(work, tx, id);
      await mailManagers(tx, accountId, url);
    });
  }

  return {
    async run() {
      const since = new Date(clock.now() - failing.forMs);
      for (const id of await findFailing(db, since, failing.apartMs)) await close(id, since);
    },
    every: 5 * second,
    complaint: "webhooks that fail cannot be looked at now",
  };
}
