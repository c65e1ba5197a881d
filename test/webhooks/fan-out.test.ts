import { create } from "@bufbuild/protobuf";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createEventLog } from "../../src/events/event-log.ts";
import { ApiKeyRevokedEventSchema } from "../../src/gen/pilothouse/v1/api_key_pb.ts";
import { createJobQueues } from "../../src/jobs/job-queues.ts";
import { createJobRunner } from "../../src/jobs/job-runner.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { createDeliveryNotices } from "../../src/webhooks/delivery-notices.ts";
import { deliveryJob } from "../../src/webhooks/delivery-queue.ts";
import { insertEndpoint } from "../../src/webhooks/endpoint-store.ts";
import { createFanOut, createLaterFanOut } from "../../src/webhooks/fan-out.ts";
import { silentLog, startTestDatabase } from "../support/database.ts";

const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test("an account with many deliveries yields to accounts with few and keeps its order", async () => {
  await using database = await startTestDatabase();
  const { db } = database;
  const [bus, clock] = [createLocalBus(), systemClock];
  const ids = createIds(clock);
  const common = { db, bus, clock, ids, log: silentLog };
  const parts = {
    ...common,
    events: createEventLog(common),
    jobQueues: createJobQueues(common),
    notices: createDeliveryNotices(common),
  };

  async function makeAccount(accountId: `acc_${string}`, endpoints: number): Promise<void> {
    await db.transaction(async (tx) => {
      await insertAccount(tx, { id: accountId, name: accountId, tier: "enterprise" });
      for (const number of numbersTo(endpoints)) {
        const id = `${accountId} ${number}`;
        const secret = { secret: Buffer.from("sealed"), secret_prefix: "whsec_" };
        await insertEndpoint(tx, { id, account_id: accountId, url: "https://example.com/", events: ["*"], ...secret });
      }
    });
  }
  const cause = (accountId: string, count: number) =>
    db.transaction(async (tx) => {
      const data = create(ApiKeyRevokedEventSchema, {});
      for (const _ of numbersTo(count))
        await parts.events.append(tx, { accountId, subject: "key_1" }, ApiKeyRevokedEventSchema, data);
    });
  const countDeliveries = async (accountId: string) =>
    (await db.sql.selectFrom("webhook_deliveries").select("id").where("account_id", "=", accountId).execute()).length;
  const countPutOff = async () =>
    (await db.sql.selectFrom("jobs").select("id").where("kind", "=", "webhook-fan-out").execute()).length;

  await makeAccount("acc_many", 10);
  await makeAccount("acc_few", 1);
  await cause("acc_many", 12);
  await cause("acc_few", 1);
  const fanOut = createFanOut(parts);
  fanOut.start?.();
  void fanOut.poll.run();
  const kinds = [createLaterFanOut(parts)];
  const runner = createJobRunner({ ...parts, metrics: new Registry(), kinds, gateway: () => 0 });
  try {
    await expect.poll(() => countDeliveries("acc_few"), { timeout: 20_000 }).toBe(1);
    expect(await countDeliveries("acc_many")).toBe(0);
    // Without the postponed events, the new event would be fanned out immediately.
    await cause("acc_many", 1);
    await expect.poll(countPutOff, { timeout: 20_000 }).toBe(2);
    expect(await countDeliveries("acc_many")).toBe(0);
    await runner.start?.();
    for (const task of runner.dueTasks) await task.run();
    await expect.poll(() => countDeliveries("acc_many"), { timeout: 20_000 }).toBe(130);
    await expect.poll(countPutOff, { timeout: 20_000 }).toBe(0);
    // The account's queue is empty now, so its events are fanned out immediately again.
    const queues = () =>
      db.sql.selectFrom("job_queues").select("queue").where("kind", "=", "webhook-fan-out").execute();
    await expect.poll(queues, { timeout: 20_000 }).toEqual([]);
    await runner.stop?.();
    await cause("acc_many", 1);
    await expect.poll(() => countDeliveries("acc_many"), { timeout: 20_000 }).toBe(140);
  } finally {
    await fanOut.stop?.();
    await runner.stop?.();
  }
  const queued = db.sql
    .selectFrom("jobs")
    .innerJoin("webhook_deliveries", (join) => join.onRef("webhook_deliveries.endpoint_id", "=", "jobs.queue"))
    .innerJoin("events", "events.id", "webhook_deliveries.event_id");
  const rows = await queued
    .select(["jobs.queue", "jobs.id", "jobs.data", "webhook_deliveries.id as delivery", "events.number"])
    .where("jobs.kind", "=", deliveryJob.kind)
    .orderBy("jobs.due_at")
    .orderBy("jobs.id")
    .execute();
  const own = rows.filter(({ data, delivery }) => JSON.stringify(data).includes(delivery));
  const orders = [...Map.groupBy(own, ({ queue }) => queue).values()].map((jobs) =>
    jobs.map(({ number }) => Number(number)),
  );
  expect(orders.map(({ length }) => length).sort()).toEqual([1, ...Array<number>(10).fill(14)]);
  expect(orders).toEqual(orders.map((numbers) => numbers.toSorted((a, b) => a - b)));
}, 60_000);
