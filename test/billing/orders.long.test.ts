import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addMonths } from "../../src/limits/paid-time.ts";
import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import { createRandom, type Random } from "../e2e/support/random.ts";
import type { SentNotice } from "../support/processor-server.ts";
import { type MoneyDeployment, type Payer, startMoneyDeployment } from "./money-deployment.ts";

const [clients, each] = [8, 25];
const day = 86_400_000;
const monthlyCents = 1_900;

let scene: MoneyDeployment;
beforeAll(async () => {
  scene = await startMoneyDeployment();
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose]());

/** Actions on an order. In half of the runs the client cancels the order concurrently. */
const courses: readonly (readonly string[])[] = [
  ["pay", "settle"],
  ["pay", "settle"],
  ["over", "settle"],
  ["little", "expire"],
  ["pay", "fail"],
  ["expire", "pay"],
  ["expire"],
  ["our end", "pay", "settle"],
  ["our end"],
];

/** Delivers notices in random order, some twice and some never. */
async function spread(random: Random, notices: readonly SentNotice[]): Promise<void> {
  const sent = notices.flatMap((notice) =>
    random.chance(0.15) ? [] : random.chance(0.3) ? [notice, notice] : [notice],
  );
  const waits = sent.map(() => [random.below(120), random.below(2)] as const);
  await Promise.all(
    sent.map(async (notice, at) => {
      const [wait, gateway] = waits[at] ?? [0, 0];
      await sleep(wait);
      await scene.deliver(notice, gateway);
    }),
  );
}

async function goThrough(payer: Payer, random: Random): Promise<void> {
  const request = { tier: "personal", months: 1 + random.below(11), crypto_currency: "btc" };
  const { status, body: order } = await payer.call(random.below(2), "/v1/billing/crypto-checkout", request);
  expect([status, order.status]).toEqual([201, "awaiting_payment"]);
  const invoice: string = order.checkout_url.split("/").at(-1);
  const course = random.pick(courses);
  const happen = async () => {
    const told: Promise<void>[] = [];
    for (const action of course) {
      await sleep(random.below(60));
      if (action === "our end")
        await sql`update crypto_orders set expires_at = now() - interval '1 hour', look_at = now()
          where id = ${order.id}`.execute(scene.db.sql);
      else told.push(spread(random, await scene.processor.act(invoice, action)));
    }
    await Promise.all(told);
  };
  const isGivenUp = random.chance(0.5);
  const [wait, gateway] = [random.below(150), random.below(2)];
  const giveUp = async () => {
    await sleep(wait);
    if (isGivenUp) await payer.call(gateway, `/v1/billing/crypto-orders/${order.id}/cancel`, {});
  };
  await Promise.all([happen(), giveUp()]);
  // Also delivers the notices of an invoice that the gateway ended.
  await spread(random, scene.processor.notices());
  const hasEnded = async () => {
    // Makes the lookup due, as after five minutes, since notices may be lost.
    const { rows } = await sql<{ status: string }>`
      update crypto_orders set look_at = case when look_at is null then null else now() end
      where id = ${order.id} returning status`.execute(scene.db.sql);
    return ["paid", "failed", "cancelled"].includes(rows[0]?.status ?? "");
  };
  expect([course, await waitUntil(hasEnded, { timeout: 60_000, every: 250 })]).toEqual([course, true]);
}

test("200 orders of eight clients over two gateways end in one status each, with matching payments and months", async () => {
  const payers = await Promise.all(Array.from({ length: clients }, () => scene.payer()));
  await Promise.all(
    payers.map(async (payer, at) => {
      const random = createRandom(7_000 + at);
      for (let order = 0; order < each; order += 1) await goThrough(payer, random);
    }),
  );
  await scene.reconcile();
  // biome-ignore lint/suspicious/noExplicitAny: rows of several tables.
  const rows = async (query: ReturnType<typeof sql<any>>) => (await query.execute(scene.db.sql)).rows;
  const orders = await rows(sql`select * from crypto_orders order by id`);
  const events = await rows(sql`select subject, type from events where type like 'crypto.order.%'`);
  const entries = await rows(sql`select subject, action from audit_entries where action like 'crypto_order.%'`);
  const grants = await rows(sql`select * from tier_grants order by created_at, id`);
  const counts: Record<string, number> = {};
  expect(orders).toHaveLength(clients * each);
  for (const order of orders) {
    const { id, status, invoice_id: invoiceId, crypto_amount_paid: paid, crypto_amount: amount } = order;
    counts[`${status} ${order.irregularity ?? ""}`.trim()] =
      (counts[`${status} ${order.irregularity ?? ""}`.trim()] ?? 0) + 1;
    const [invoice] = [await scene.processor.invoice(invoiceId)];
    expect([id, paid]).toEqual([id, invoice?.paid]);
    expect([id, events.filter(({ subject }) => subject === id).map(({ type }) => type)]).toEqual([
      id,
      status === "cancelled" ? [] : [`crypto.order.${status}`],
    ]);
    const ends = ["crypto_order.paid", "crypto_order.failed", "crypto_order.cancel"];
    const ended = entries.filter(({ subject, action }) => subject === id && ends.includes(action));
    expect([id, ended.map(({ action }) => action)]).toEqual([
      id,
      [status === "cancelled" ? "crypto_order.cancel" : `crypto_order.${status}`],
    ]);
    expect([id, grants.filter((grant) => grant.id === id).map(({ months }) => months)]).toEqual([
      id,
      status === "paid" ? [order.months] : [],
    ]);
    if (status === "paid") expect([id, invoice?.status]).toEqual([id, "Settled"]);
    // An underpaid, late or overpaid order is flagged for review.
    const isIrregular = status === "paid" ? paid !== amount : paid !== "0";
    expect([id, status, paid, order.irregularity !== null]).toEqual([id, status, paid, isIrregular]);
  }
  let served = 0;
  for (const payer of payers) {
    const own = orders.filter((order) => order.account_id === payer.accountId && order.status === "paid");
    const cents = own.map(({ amount_cents }) => amount_cents).reduce((sum, value) => sum + value, 0);
    const months = own.map((order) => Math.min(order.months, 10)).reduce((sum, value) => sum + value, 0);
    expect(cents).toBe(months * monthlyCents);
    expect(new Set(own.map(({ receipt_number }) => receipt_number)).size).toBe(own.length);
    const blocks = grants.filter(({ account_id }) => account_id === payer.accountId);
    // Of equal tiers only the oldest block runs; the others keep all their months.
    const [first, ...others] = blocks;
    const { subscription, tier } = (await payer.call(served % 2, "/v1/billing")).body;
    expect(tier).toBe(first ? "personal" : "free");
    if (!first) continue;
    served += 1;
    expect(others.every(({ left_ms, running_since }) => left_ms === null && running_since === null)).toBe(true);
    const until = addMonths(first.running_since.getTime(), first.months);
    expect(first.ends_at.getTime()).toBe(until);
    expect(Date.parse(subscription.period_ends_at)).toBe(until);
    const [order] = own.filter(({ id }) => id === first.id);
    expect(Math.abs(first.running_since.getTime() - order.paid_at.getTime())).toBeLessThan(day);
  }
  console.log(JSON.stringify(counts));
}, 600_000);
