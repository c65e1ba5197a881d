import type { EventLog } from "../events/event-log.ts";
import type { StoredEvent } from "../events/store.ts";
import { subscribableTypes } from "../events/subscribable-events.ts";
import type { Work } from "../jobs/work.ts";
import { defineWork, type WorkKind } from "../kernel/work-kind.ts";
import { sleep } from "../platform/bounded-wait.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Ids } from "../platform/ids.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { NamedStatement, Tx } from "../platform/postgres/database.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import { queueDeliveries } from "./delivery-queue.ts";
import type { NewDelivery } from "./delivery-store.ts";
import { findSubscribers, type Subscriber } from "./endpoint-store.ts";

/** Milliseconds. The bus only wakes: whatever it loses is found once a second. */
const pollEvery = 1_000;

/*
 * The commit does not wait for the disk. When PostgreSQL loses it by a crash, the place in the log is lost with it, and all of
 * it is done again: at worst an event that has left by then leaves a second time, under the same identifier.
 */
const commitAsynchronously: NamedStatement = {
  name: "commit-asynchronously",
  text: "set local synchronous_commit = off",
};

/** What it is called in the log of events. */
export const fanOutConsumer = "webhooks";

/** Events that are taken with one transaction. */
const batch = 250;

/**
 * Deliveries that are queued in the transaction that takes their events: of one account, and in all. Thousands take a second,
 * in which nobody's events would be taken: accounts that have more are put off.
 */
const mostAtOnce = { ofAccount: 16, inAll: 100 };

/** The deliveries that were put off. Its lanes are accounts: they have their turns, and each keeps the order of its events. */
const laterWork = { kind: "webhook-fan-out" } as const;

/**
 * Milliseconds for which they are put off, and between two of them: what many accounts cause at once is spread, and comes when
 * the rest of what was caused with it has been sent.
 */
const putOffFor = 300;
const restBetween = 20;

/** Events of an account, in their order, each with the endpoints that are told of it. */
interface Notices {
  readonly accountId: string;
  readonly events: readonly (Pick<NewDelivery, "eventId" | "eventType" | "subject"> & {
    readonly endpointIds: readonly string[];
  })[];
}

/** Notices that were put off until a time, in milliseconds since the Unix epoch. */
interface PutOff extends Notices {
  readonly until: number;
}

export interface FanOutParts {
  readonly events: EventLog;
  readonly work: Work;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
}

const wants = ({ events }: Subscriber, { type }: StoredEvent): boolean => events.includes("*") || events.includes(type);

function noticesOf(all: readonly StoredEvent[], subscribers: readonly Subscriber[]): Notices[] {
  const byAccount = Map.groupBy(subscribers, ({ account_id: id }) => id);
  return [...Map.groupBy(all, ({ accountId }) => accountId)].map(([accountId, own]) => ({
    accountId,
    events: own.map((event) => ({
      ...{ eventId: event.id, eventType: event.type, subject: event.subject },
      endpointIds: (byAccount.get(accountId) ?? []).filter((each) => wants(each, event)).map(({ id }) => id),
    })),
  }));
}

const countDeliveries = ({ events }: Notices): number =>
  events.reduce((sum, { endpointIds }) => sum + endpointIds.length, 0);

function queueNotices({ work, ids, clock }: FanOutParts, tx: Tx, all: readonly Notices[]): void {
  const createdAt = new Date(clock.now());
  const deliveries = all.flatMap(({ accountId, events }) =>
    events.flatMap(({ endpointIds, ...event }) =>
      endpointIds.map((endpointId) => ({ ...event, accountId, endpointId, createdAt, id: ids.next("dlv") })),
    ),
  );
  queueDeliveries(work, tx, deliveries);
}

/** Makes the work that queues what was put off. It has all that it needs, and cannot fail: the order would be lost by that. */
export function createLaterFanOut(parts: FanOutParts): WorkKind<PutOff> {
  return defineWork({
    ...laterWork,
    // One at once: more would take PostgreSQL from the rest.
    ...{ lanes: 1, width: 1, timeout: 60_000, schedule: [] },
    async run({ data }, signal) {
      // A clock that was set back makes it no longer.
      const rest = Math.min(data.until - parts.clock.now(), putOffFor);
      await sleep(Math.max(rest, restBetween), signal);
      return { write: (tx) => queueNotices(parts, tx, [data]) };
    },
  });
}

/** Makes a delivery of each event to each endpoint that is told of it: one gateway at a time does, for all accounts. */
export function createFanOut(parts: FanOutParts): Part {
  const { events, work, bus } = parts;

  async function queue(tx: Tx, taken: readonly StoredEvent[]): Promise<void> {
    const told = taken.filter(({ type }) => subscribableTypes.has(type));
    const accounts = [...new Set(told.map(({ accountId }) => accountId))];
    if (accounts.length === 0) return;
    const [subscribers, behind] = await Promise.all([
      findSubscribers(tx, accounts),
      work.findBusy(tx, laterWork, accounts),
    ]);
    const [now, later]: [Notices[], Notices[]] = [[], []];
    let all = 0;
    // Those with few deliveries first: they wait for nobody who has many.
    for (const own of noticesOf(told, subscribers).toSorted((a, b) => countDeliveries(a) - countDeliveries(b))) {
      const count = countDeliveries(own);
      if (count === 0) continue;
      all += count;
      const isMuch = count > mostAtOnce.ofAccount || all > mostAtOnce.inAll;
      // What comes after events that were put off waits for those.
      (behind.has(own.accountId) || isMuch ? later : now).push(own);
    }
    tx.sendNamed(commitAsynchronously, []);
    queueNotices(parts, tx, now);
    const until = parts.clock.now() + putOffFor;
    const jobs = later.map((data) => ({ lane: data.accountId, data: { ...data, until } }));
    work.enqueueAll<PutOff>(tx, laterWork, jobs);
  }

  async function run(): Promise<void> {
    while ((await events.consume(fanOutConsumer, batch, queue)) === batch);
  }

  const job = createRepeatedJob({ run, every: pollEvery, complaint: "events cannot be queued for webhooks" }, parts);
  let unsubscribe: (() => void) | undefined;
  return {
    start() {
      unsubscribe = bus.subscribe("events", () => void job.runNow());
      job.start();
    },
    async stop() {
      unsubscribe?.();
      await job.stop();
    },
  };
}
