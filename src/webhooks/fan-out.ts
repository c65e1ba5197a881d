import type { EventLog } from "../events/event-log.ts";
import type { StoredEvent } from "../events/store.ts";
import { eventsAreLeft } from "../events/store.ts";
import { subscribableTypes } from "../events/subscribable-events.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import { defineJob, type JobKind } from "../kernel/job-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import type { Part } from "../platform/lifetime.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { NamedStatement, Tx } from "../platform/postgres/database.ts";
import type { DueTask } from "../platform/postgres/due-tasks.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import type { DeliveryNotices } from "./delivery-notices.ts";
import { queueDeliveries } from "./delivery-queue.ts";
import type { NewDelivery } from "./delivery-store.ts";
import { findSubscribers, type Subscriber } from "./endpoint-store.ts";

/*
 * The commit does not wait for the disk. If a crash of PostgreSQL loses the commit, the position in the event log is
 * lost with it, and the batch is repeated. At worst an event is sent twice, under the same identifier.
 */
const commitAsynchronously: NamedStatement = {
  name: "commit-asynchronously",
  text: "set local synchronous_commit = off",
};

/** Consumer name in the event log. */
export const fanOutConsumer = "webhooks";

/** Maximum events per transaction. */
const batch = 250;

/**
 * Maximum deliveries queued in the transaction that reads their events, per account and in total. Queueing thousands
 * takes a second, in which no other events are processed, so larger accounts are deferred.
 */
const maxAtOnce = { ofAccount: 16, inAll: 100 };

/**
 * Job kind of deferred deliveries. Each account has its own queue partition, so that accounts alternate and the events
 * of each account keep their order.
 */
const laterFanOutJob = { kind: "webhook-fan-out" } as const;

/** Milliseconds for which a burst of deliveries is deferred, so that other deliveries are sent first. */
const deferFor = 300;
/** Milliseconds between deferred jobs, to spread their load. */
const spreadMs = 20;

/** Events of an account in order, each with its subscribed endpoints. */
interface AccountEvents {
  readonly accountId: string;
  readonly events: readonly (Pick<NewDelivery, "eventId" | "eventType" | "subject"> & {
    readonly endpointIds: readonly string[];
  })[];
}

/** Events deferred until a time in milliseconds since the Unix epoch. */
interface DeferredEvents extends AccountEvents {
  readonly until: number;
}

export interface FanOutParts extends Pick<PlatformParts, "bus" | "ids" | "clock" | "log"> {
  readonly events: EventLog;
  readonly jobQueues: JobQueues;
  readonly notices: DeliveryNotices;
}

const subscribesTo = ({ events }: Subscriber, { type }: StoredEvent): boolean =>
  events.includes("*") || events.includes(type);

function groupByAccount(all: readonly StoredEvent[], subscribers: readonly Subscriber[]): AccountEvents[] {
  const byAccount = Map.groupBy(subscribers, ({ account_id: id }) => id);
  return [...Map.groupBy(all, ({ accountId }) => accountId)].map(([accountId, own]) => ({
    accountId,
    events: own.map((event) => ({
      eventId: event.id,
      eventType: event.type,
      subject: event.subject,
      endpointIds: (byAccount.get(accountId) ?? []).filter((each) => subscribesTo(each, event)).map(({ id }) => id),
    })),
  }));
}

const countDeliveries = ({ events }: AccountEvents): number =>
  events.reduce((sum, { endpointIds }) => sum + endpointIds.length, 0);

function queueAccountEvents(
  { jobQueues, ids, clock, notices }: FanOutParts,
  tx: Tx,
  all: readonly AccountEvents[],
): void {
  const createdAt = new Date(clock.now());
  const deliveries = all.flatMap(({ accountId, events }) =>
    events.flatMap(({ endpointIds, ...event }) =>
      endpointIds.map((endpointId) => ({ ...event, accountId, endpointId, createdAt, id: ids.next("dlv") })),
    ),
  );
  queueDeliveries(jobQueues, tx, deliveries);
  for (const delivery of deliveries) notices.publish(tx, delivery);
}

/**
 * Creates the job kind that queues deferred deliveries. The job has no retries, because a retry would break the order
 * of events. The data of the job is complete, so that no lookup can fail.
 */
export function createLaterFanOut(parts: FanOutParts): JobKind<DeferredEvents> {
  return defineJob({
    ...laterFanOutJob,
    // One job at a time, to limit the load on PostgreSQL.
    queues: 1,
    width: 1,
    timeout: 60_000,
    schedule: [],
    async run({ data }, signal) {
      // Bounds the wait if the clock was set back.
      const wait = Math.min(data.until - parts.clock.now(), deferFor);
      await sleep(Math.max(wait, spreadMs), signal);
      return { write: (tx) => queueAccountEvents(parts, tx, [data]) };
    },
  });
}

/** Fan-out of events to deliveries. Polling finds events for which the bus message was lost. */
export interface FanOut extends Part {
  readonly poll: DueTask;
}

/** Creates the fan-out, which runs on one gateway at a time for all accounts. */
export function createFanOut(parts: FanOutParts): FanOut {
  const { events, jobQueues, bus } = parts;

  async function queue(tx: Tx, taken: readonly StoredEvent[]): Promise<void> {
    const subscribable = taken.filter(({ type }) => subscribableTypes.has(type));
    const accounts = [...new Set(subscribable.map(({ accountId }) => accountId))];
    if (accounts.length === 0) return;
    const [subscribers, deferred] = await Promise.all([
      findSubscribers(tx, accounts),
      jobQueues.findBusy(tx, laterFanOutJob, accounts),
    ]);
    const [now, later]: [AccountEvents[], AccountEvents[]] = [[], []];
    let all = 0;
    // Accounts with few deliveries come first, so that larger accounts do not use up `maxAtOnce.inAll`.
    for (const own of groupByAccount(subscribable, subscribers).toSorted(
      (a, b) => countDeliveries(a) - countDeliveries(b),
    )) {
      const count = countDeliveries(own);
      if (count === 0) continue;
      all += count;
      const isLarge = count > maxAtOnce.ofAccount || all > maxAtOnce.inAll;
      // Events behind deferred events of the same account are deferred too, to keep the order.
      (deferred.has(own.accountId) || isLarge ? later : now).push(own);
    }
    tx.sendNamed(commitAsynchronously, []);
    queueAccountEvents(parts, tx, now);
    const until = parts.clock.now() + deferFor;
    const jobs = later.map((data) => ({ queue: data.accountId, data: { ...data, until } }));
    jobQueues.enqueueAll<DeferredEvents>(tx, laterFanOutJob, jobs);
  }

  async function run(): Promise<void> {
    while ((await events.consume(fanOutConsumer, batch, queue)) === batch);
  }

  const failureMessage = "failed to queue events for webhooks";
  const job = createRepeatedJob({ run, every: Number.POSITIVE_INFINITY, failureMessage }, parts);
  let unsubscribe: (() => void) | undefined;
  return {
    poll: { isDue: () => eventsAreLeft(fanOutConsumer), run: job.runNow, failureMessage },
    start() {
      unsubscribe = bus.subscribe("events", () => void job.runNow());
    },
    async stop() {
      unsubscribe?.();
      await job.stop();
    },
  };
}
