import type { EventLog } from "../events/event-log.ts";
import type { StoredEvent } from "../events/store.ts";
import { subscribableTypes } from "../events/subscribable-events.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import type { Ids } from "../platform/ids.ts";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { NamedStatement, Tx } from "../platform/postgres/database.ts";
import { createRepeatedJob } from "../platform/repeated-job.ts";
import type { Work } from "../work/work.ts";
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

/** Events that are taken with one transaction. */
const batch = 50;

export interface FanOutParts {
  readonly events: EventLog;
  readonly work: Work;
  readonly bus: Bus;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
}

const wants = ({ events }: Subscriber, { type }: StoredEvent): boolean => events.includes("*") || events.includes(type);

/** Makes a delivery of each event to each endpoint that is told of it: one gateway at a time does, for all accounts. */
export function createFanOut({ events, work, bus, ids, clock, log }: FanOutParts): Part {
  async function queue(tx: Tx, all: readonly StoredEvent[]): Promise<void> {
    const told = all.filter(({ type }) => subscribableTypes.has(type));
    const accounts = [...new Set(told.map(({ accountId }) => accountId))];
    if (accounts.length === 0) return;
    const subscribers = Map.groupBy(await findSubscribers(tx, accounts), ({ account_id: id }) => id);
    const createdAt = new Date(clock.now());
    const deliveries = told.flatMap((event): NewDelivery[] => {
      const { id: eventId, type: eventType, subject, accountId } = event;
      const endpoints = (subscribers.get(accountId) ?? []).filter((endpoint) => wants(endpoint, event));
      const common = { eventId, eventType, subject, accountId, createdAt };
      return endpoints.map(({ id: endpointId }) => ({ ...common, id: ids.next("dlv"), endpointId }));
    });
    tx.sendNamed(commitAsynchronously, []);
    queueDeliveries(work, tx, deliveries);
  }

  async function run(): Promise<void> {
    while ((await events.consume("webhooks", batch, queue)) === batch);
  }

  const job = createRepeatedJob({ run, every: pollEvery, complaint: "events cannot be queued for webhooks" }, log);
  let unsubscribe: (() => void) | undefined;
  return {
    start() {
      unsubscribe = bus.subscribe("events", job.hurry);
      job.start();
    },
    async stop() {
      unsubscribe?.();
      await job.stop();
    },
  };
}
