import { type SqlBool, sql } from "kysely";
import type { JobQueues } from "../jobs/job-queues.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import { componentLabels, healthWords } from "./components.ts";
import type { IncidentRow } from "./incident-store.ts";
import { endTokenOf } from "./subscriptions.ts";

/** Minimum milliseconds between e-mails about the same incident. */
const mailEvery = 900_000;

/** Maximum number of e-mails per transaction. */
const batch = 200;

interface MailingJob {
  readonly mailingId: string;
}

export interface IncidentMailsParts extends Pick<PlatformParts, "db" | "clock" | "sealer"> {
  readonly mailer: Mailer;
  readonly jobQueues: JobQueues;
  readonly publicUrl: string;
}

/** Condition: subscribers must be notified of an incident now. */
const isUnmailed = (now: number) => sql<SqlBool>`
  (told_at is null or told_at < changed_at and told_at <= ${new Date(now - mailEvery)})`;

/** Locks and returns the incidents for which `isUnmailed` holds. Skips rows locked by other transactions. */
async function lockUnmailed(tx: Tx, now: number): Promise<IncidentRow[]> {
  return await tx.sql
    .selectFrom("status_incidents")
    .selectAll()
    .where(isUnmailed(now))
    .orderBy("id")
    .forUpdate()
    .skipLocked()
    .execute();
}

/** Returns the e-mail about an incident, with the updates since the last e-mail. */
async function write(tx: Tx, incident: IncidentRow, now: number) {
  const { id, origin, title, health, components, resolved_at: end, started_at: from, told_at: mailedAt } = incident;
  const updates = tx.sql.selectFrom("status_updates").select(["text", "created_at"]).where("incident_id", "=", id);
  const recent = await updates
    .where("created_at", ">", mailedAt ?? new Date(0))
    .orderBy("id")
    .execute();
  const isOver = end !== null && end.getTime() <= now;
  const stage = isOver ? "Resolved" : origin === "maintenance" ? "Maintenance" : mailedAt ? "Update" : "Incident";
  const names = components.map((name) => componentLabels[name]).join(", ");
  const utc = (time: Date): string => time.toISOString().slice(0, 16).replace("T", " ").concat(" UTC");
  const planned = origin === "maintenance" && end ? [`From ${utc(from)} to ${utc(end)}.`] : [];
  return {
    subject: `${stage}: ${title}`,
    lines: [
      `${names}: ${isOver ? "resolved" : healthWords[health]}.`,
      ...planned,
      ...recent.map(({ text, created_at: at }) => `${utc(at)}: ${text}`),
    ],
  };
}

/** Creates the task that finds changed incidents, and the kind of job that e-mails subscribers. */
export function createIncidentMails(parts: IncidentMailsParts): {
  readonly task: DueTask;
  readonly jobKind: JobKind<MailingJob>;
} {
  const { db, clock, mailer, sealer, jobQueues, publicUrl } = parts;

  async function mailBatch(tx: Tx, mailingId: string): Promise<number> {
    const mailing = await tx.sql
      .selectFrom("status_mailings")
      .selectAll()
      .where("id", "=", mailingId)
      .forUpdate()
      .executeTakeFirst();
    if (!mailing) return 0;
    const subscribers = await tx.sql
      .selectFrom("status_subscribers")
      .select(["id", "email", "end_token"])
      .where("id", ">", mailing.after_id)
      .where("confirmed_at", "is not", null)
      .where("ended_at", "is", null)
      .orderBy("id")
      .limit(batch)
      .execute();
    const last = subscribers.at(-1);
    const own = { mailing: tx.sql.updateTable("status_mailings"), done: tx.sql.deleteFrom("status_mailings") };
    if (last && subscribers.length === batch)
      tx.send(own.mailing.set({ after_id: last.id }).where("id", "=", mailingId));
    else tx.send(own.done.where("id", "=", mailingId));
    for (const subscriber of subscribers) {
      const token = await endTokenOf(tx, sealer, subscriber);
      await mailer.send(tx, {
        to: subscriber.email,
        kind: "status",
        subject: mailing.subject,
        lines: mailing.lines,
        button: { label: "See the status", url: `${publicUrl}/status` },
        unsubscribe: {
          page: mailer.link("status/unsubscribe", token),
          oneClick: `${publicUrl}/v1/status/subscribe/unsubscribe?token=${token}`,
        },
      });
    }
    return subscribers.length;
  }

  // If a gateway dies, another gateway continues after the last committed batch.
  const mailing = defineJob<MailingJob>({
    kind: "status-mail",
    width: 1,
    schedule: [1_000, 10_000, 60_000, 600_000],
    timeout: 300_000,
    async run({ data: { mailingId } }) {
      while ((await db.transaction((tx) => mailBatch(tx, mailingId))) === batch);
    },
  });

  async function sendMails(tx: Tx): Promise<void> {
    const now = clock.now();
    for (const incident of await lockUnmailed(tx, now)) {
      const mail = await write(tx, incident, now);
      tx.send(
        tx.sql
          .updateTable("status_incidents")
          .set({ told_at: new Date(now) })
          .where("id", "=", incident.id),
      );
      const { id } = await tx.sql
        .insertInto("status_mailings")
        .values({ ...mail, created_at: new Date(now) })
        .returning("id")
        .executeTakeFirstOrThrow();
      jobQueues.enqueue(tx, mailing, { queue: "status", data: { mailingId: id } });
    }
  }

  const task: DueTask = {
    isDue: () => sql`exists (select from status_incidents where ${isUnmailed(clock.now())})`,
    run: () => db.transaction(sendMails),
    failureMessage: "failed to notify subscribers of incidents",
  };
  return { task, jobKind: mailing };
}
