import { afterAll, beforeAll, expect, test } from "vitest";
import { orderJob } from "../../src/billing/order-sync.ts";
import { addMonths } from "../../src/limits/paid-time.ts";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { mailAbout, type Person } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { billingUntil, press, subscribe } from "../support/sandbox.ts";

const minute = 60_000;
const orderRequest = { tier: "api_builder", months: 2, crypto_currency: "btc" };

const operator = "operator@example.com";

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway({ OPERATOR_EMAIL: operator });
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
type Order = any;

async function open({ rest }: Person, request: object = orderRequest): Promise<Order> {
  const { status, body } = await rest("/v1/billing/crypto-checkout", request);
  expect(status).toBe(201);
  return body;
}

async function orderUntil({ rest }: Person, id: string, status: string): Promise<Order> {
  let order: Order;
  const isThere = await waitUntil(
    async () => {
      order = (await rest(`/v1/billing/crypto-orders/${id}`)).body;
      return order.status === status;
    },
    { timeout: 20_000, every: 200 },
  );
  if (!isThere) throw new Error(`the order does not become ${status}: ${JSON.stringify(order)}`);
  return order;
}

async function eventsOf({ rest }: Person, id: string): Promise<string[]> {
  const { data } = (await rest("/v1/events?limit=100")).body;
  return data.filter(({ data: about }: Order) => about.order_id === id).map(({ type }: Order) => type);
}

test("an order can be quoted, opened, paid and settled, and its months apply", async () => {
  const ada = await gateway.signUp({ accountName: "Ψηφιακή Ελ 数据公司" });
  const { body: quoted } = await ada.rest("/v1/billing/crypto-checkout/quote", orderRequest);
  expect(quoted).toMatchObject({ status: "quoted", amount_cents: 9_800, crypto_amount: "0.00104268", livemode: false });
  expect(Math.ceil((Date.parse(quoted.quote_expires_at) - gateway.now()) / minute)).toBe(15);
  const order = await open(ada, { order_id: quoted.id });
  expect(order).toMatchObject({ id: quoted.id, status: "awaiting_payment", crypto_amount_paid: "0" });
  expect((await ada.rest("/v1/billing")).body.open_crypto_order_id).toBe(order.id);
  expect(await ada.rest("/v1/billing/crypto-checkout", orderRequest)).toMatchObject({ status: 409 });
  expect(await ada.rest(`/v1/billing/crypto-orders/${order.id}/receipt`)).toMatchObject({ status: 409 });
  await press(order.checkout_url, "pay");
  await orderUntil(ada, order.id, "confirming");
  expect(await ada.rest(`/v1/billing/crypto-orders/${order.id}/cancel`, {})).toMatchObject({ status: 409 });
  await press(order.checkout_url, "settle");
  const paid = await orderUntil(ada, order.id, "paid");
  expect(paid).toMatchObject({ crypto_amount_paid: "0.00104268", paid_at: expect.any(String) });
  const { tier, subscription } = await billingUntil(ada.rest, (billing) => billing.tier === "api_builder");
  expect([tier, subscription.payment_method]).toEqual(["api_builder", "crypto"]);
  expect(Date.parse(subscription.period_ends_at)).toBe(addMonths(Date.parse(subscription.period_started_at), 2));
  const isReported = async () => (await eventsOf(ada, order.id)).length > 0;
  expect(await waitUntil(isReported, { timeout: 20_000, every: 20 })).toBe(true);
  expect(await eventsOf(ada, order.id)).toEqual(["crypto.order.paid"]);
  await mailAbout(gateway.mailbox, ada.email, "Your order is paid");
});

test("a receipt has the same content as JSON, text and PDF, and each revision has stable bytes", async () => {
  const ada = await gateway.signUp({ accountName: "Ада 数据公司" });
  const order = await open(ada);
  await press(order.checkout_url, "pay");
  await press(order.checkout_url, "settle");
  await orderUntil(ada, order.id, "paid");
  const path = `/v1/billing/crypto-orders/${order.id}`;
  const pdf = async () => {
    const answer = await fetch(`${gateway.url}${path}/receipt.pdf`, {
      headers: { authorization: `Bearer ${ada.accessToken}` },
    });
    expect(answer.headers.get("content-type")).toBe("application/pdf");
    expect(answer.headers.get("content-disposition")).toMatch(/^attachment; filename="receipt-\S+\.pdf"$/);
    return Buffer.from(await answer.arrayBuffer());
  };
  const { body: receipt } = await ada.rest(`${path}/receipt`);
  expect(receipt).toMatchObject({
    buyer: "Ада 数据公司",
    amount_cents: 9_800,
    revision: 1,
    transaction_ids: [expect.any(String)],
  });
  const { body: text } = await ada.rest(`${path}/receipt.txt`);
  for (const said of [receipt.number, "Ада 数据公司", "98.00 USD", "0.00104268 BTC", order.id])
    expect(text).toContain(said);
  const first = await pdf();
  expect(first.subarray(0, 5).toString()).toBe("%PDF-");
  expect((await pdf()).equals(first)).toBe(true);
  const lines = { invoice_lines: ["VAT ATU12345678"] };
  expect((await ada.rest(path, lines, { method: "PATCH" })).status).toBe(200);
  expect((await ada.rest("/v1/account/me", { account_name: "Another" }, { method: "PATCH" })).status).toBe(200);
  expect((await ada.rest(`${path}/receipt`)).body).toMatchObject({ revision: 2, buyer: "Ада 数据公司", ...lines });
  expect((await pdf()).equals(first)).toBe(false);
  await press(order.checkout_url, "pay");
  const isTwice = async () => (await ada.rest(path)).body.crypto_amount_paid === "0.00208536";
  expect(await waitUntil(isTwice, { timeout: 10_000, every: 20 })).toBe(true);
  expect((await ada.rest(`${path}/receipt`)).body).toMatchObject({ revision: 3, crypto_amount_paid: "0.00208536" });
  const late = await ada.rest(path, { refund_address: "bc1q" }, { method: "PATCH" });
  expect(late).toMatchObject({ status: 409 });
});

test("an underpaid, late or overpaid order is reported for review and keeps its status", async () => {
  const ada = await gateway.signUp();
  const little = await open(ada);
  await press(little.checkout_url, "little");
  await press(little.checkout_url, "expire");
  const failed = await orderUntil(ada, little.id, "failed");
  expect(failed).toMatchObject({ failure_reason: "expired", crypto_amount_paid: "0.00000001" });
  await mailAbout(gateway.mailbox, ada.email, "A payment needs review");
  const told = await mailAbout(gateway.mailbox, operator, `A payment of order ${little.id} needs review`);
  expect(told.text).toContain("0.00000001 of 0.00104268 BTC received; the order is failed.");
  await press(little.checkout_url, "pay");
  const isSeen = async () =>
    (await ada.rest(`/v1/billing/crypto-orders/${little.id}`)).body.crypto_amount_paid !== "0.00000001";
  expect(await waitUntil(isSeen, { timeout: 20_000, every: 20 })).toBe(true);
  const late = await orderUntil(ada, little.id, "failed");
  expect(late.crypto_amount_paid).toBe("0.00104269");
  const irregularity = async ({ id } = little) => {
    const select = gateway.app.db.sql.selectFrom("crypto_orders").select("irregularity").where("id", "=", id);
    return (await select.executeTakeFirstOrThrow()).irregularity;
  };
  await mailAbout(gateway.mailbox, operator, `A payment of order ${little.id} needs review`);
  expect(await irregularity()).toBe("too_late");
  await gateway.admin("refund", "--order", little.id);
  expect(await orderUntil(ada, little.id, "failed")).toMatchObject({
    refunded_at: expect.any(String),
    refunded_cents: 0,
  });
  await expect(gateway.admin("refund", "--order", little.id)).rejects.toThrow("no payment left to return");
  expect(await irregularity()).toBeNull();
  // A later payment needs another review.
  await press(little.checkout_url, "pay");
  await mailAbout(gateway.mailbox, operator, `A payment of order ${little.id} needs review`);
  expect(await irregularity()).toBe("too_late");
  const over = await open(ada);
  await press(over.checkout_url, "over");
  await press(over.checkout_url, "settle");
  expect(await orderUntil(ada, over.id, "paid")).toMatchObject({ crypto_amount_paid: "0.00208536" });
  await mailAbout(gateway.mailbox, operator, `A payment of order ${over.id} needs review`);
  expect(await irregularity(over)).toBe("too_much");
  await gateway.admin("return", "--order", over.id);
  await expect(gateway.admin("return", "--order", over.id)).rejects.toThrow("no excess payment left to return");
  expect(await orderUntil(ada, over.id, "paid")).toMatchObject({ refunded_at: null });
  // Another sync does not request a new review, but another payment does.
  const { db, jobQueues } = gateway.app;
  await db.transaction(async (tx) => jobQueues.enqueue(tx, orderJob, { queue: over.id, data: {} }));
  const jobs = db.sql.selectFrom("jobs").select("id").where("queue", "=", over.id);
  await expect.poll(() => jobs.execute()).toEqual([]);
  expect(await irregularity(over)).toBeNull();
  await press(over.checkout_url, "pay");
  const again = await mailAbout(gateway.mailbox, operator, `A payment of order ${over.id} needs review`);
  expect(again.text).toContain("0.00312804 of 0.00104268 BTC received; the order is paid.");
  expect(await irregularity(over)).toBe("too_much");
  expect(await eventsOf(ada, little.id)).toEqual(["crypto.order.failed"]);
}, 60_000);

test("an exact payment after expiry is too late, and needs no review after its refund", async () => {
  const ada = await gateway.signUp();
  const order = await open(ada);
  await press(order.checkout_url, "expire");
  await orderUntil(ada, order.id, "failed");
  const { db, jobQueues } = gateway.app;
  const select = db.sql.selectFrom("crypto_orders").select(["crypto_amount_paid", "irregularity"]);
  const paid = () => select.where("id", "=", order.id).executeTakeFirstOrThrow();
  await press(order.checkout_url, "pay");
  const late = { crypto_amount_paid: order.crypto_amount, irregularity: "too_late" };
  await expect.poll(paid).toEqual(late);
  await gateway.admin("refund", "--order", order.id);
  await db.transaction(async (tx) => jobQueues.enqueue(tx, orderJob, { queue: order.id, data: {} }));
  const jobs = db.sql.selectFrom("jobs").select("id").where("queue", "=", order.id);
  await expect.poll(() => jobs.execute()).toEqual([]);
  expect(await paid()).toEqual({ ...late, irregularity: null });
});

test("an order can be cancelled only before a payment, without an event", async () => {
  const ada = await gateway.signUp();
  const order = await open(ada);
  const cancelled = await ada.rest(`/v1/billing/crypto-orders/${order.id}/cancel`, {});
  expect(cancelled).toMatchObject({ status: 200, body: { status: "cancelled" } });
  const isInvalid = async () => (await (await fetch(order.checkout_url)).text()).includes("Invalid");
  expect(await waitUntil(isInvalid, { timeout: 20_000, every: 20 })).toBe(true);
  expect(await orderUntil(ada, order.id, "cancelled")).toMatchObject({ failure_reason: null });
  expect(await eventsOf(ada, order.id)).toEqual([]);
  const another = await open(ada);
  await press(another.checkout_url, "little");
  expect(await ada.rest(`/v1/billing/crypto-orders/${another.id}/cancel`, {})).toMatchObject({ status: 409 });
});

test("concurrent cancellation and payment end in one status with at most one event", async () => {
  const people = await Promise.all([0, 1, 2, 3].map(() => gateway.signUp()));
  await Promise.all(
    people.map(async (ada) => {
      const order = await open(ada);
      const [, cancelled] = await Promise.all([
        press(order.checkout_url, "pay").then(() => press(order.checkout_url, "settle")),
        ada.rest(`/v1/billing/crypto-orders/${order.id}/cancel`, {}),
      ]);
      const end = await orderUntil(ada, order.id, cancelled.status === 200 ? "cancelled" : "paid");
      const { tier } = await billingUntil(ada.rest, (billing) => billing.tier !== "free" || end.status === "cancelled");
      expect(tier).toBe(end.status === "paid" ? "api_builder" : "free");
      if (end.status === "paid") await expect.poll(() => eventsOf(ada, order.id), { timeout: 20_000 }).toHaveLength(1);
      else expect(await eventsOf(ada, order.id)).toEqual([]);
    }),
  );
});

test("an account with a card subscription cannot open an order", async () => {
  const ada = await gateway.signUp();
  await subscribe(ada.rest, "personal");
  expect(await ada.rest("/v1/billing/crypto-checkout", orderRequest)).toMatchObject({ status: 409 });
});

test("an unpaid order without notices expires by the gateway's clock, and an expired quote cannot be opened", async () => {
  const ada = await gateway.signUp();
  const order = await open(ada);
  const grace = await gateway.signUp();
  const { body: quoted } = await grace.rest("/v1/billing/crypto-checkout/quote", orderRequest);
  gateway.pass(14 * minute);
  expect((await grace.rest(`/v1/billing/crypto-orders/${quoted.id}`)).body.status).toBe("quoted");
  const keys = await Promise.all([ada, grace].map(({ rest }) => rest("/v1/api-keys", { name: "later" })));
  const [later, graceLater] = keys.map(({ body }) => ({ rest: ada.rest, key: body.key }));
  const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  gateway.pass(60 * minute);
  expect(await grace.rest("/v1/billing/crypto-checkout", { order_id: quoted.id }, as(graceLater?.key))).toMatchObject({
    status: 409,
  });
  const hasFailed = async () =>
    (await ada.rest(`/v1/billing/crypto-orders/${order.id}`, undefined, as(later?.key))).body.status === "failed";
  expect(await waitUntil(hasFailed, { timeout: 20_000, every: 50 })).toBe(true);
});

test("an unsigned or wrongly signed notice is refused", async () => {
  const body = JSON.stringify({ deliveryId: "1", invoiceId: "inv_1", type: "InvoiceSettled" });
  const send = (headers: Record<string, string>) =>
    fetch(`${gateway.url}/processors/btcpay`, { method: "POST", body, headers });
  expect((await send({})).status).toBe(400);
  expect((await send({ "btcpay-sig": `sha256=${"0".repeat(64)}` })).status).toBe(400);
});

test("a refund before settlement fails the order and invalidates its invoice", async () => {
  const ada = await gateway.signUp();
  const order = await open(ada);
  await press(order.checkout_url, "pay");
  expect(await orderUntil(ada, order.id, "confirming")).toMatchObject({ status: "confirming" });
  await gateway.admin("refund", "--order", order.id);
  expect(await orderUntil(ada, order.id, "failed")).toMatchObject({ status: "failed", failure_reason: "refunded" });
  await mailAbout(gateway.mailbox, ada.email, "Your order was not paid");
  const isInvalid = async () => (await (await fetch(order.checkout_url)).text()).includes("Invalid");
  expect(await waitUntil(isInvalid, { timeout: 10_000, every: 20 })).toBe(true);
  expect(await eventsOf(ada, order.id)).toEqual(["crypto.order.failed"]);
}, 60_000);

test("the operator can list orders, extend their months and record refunds, which end them", async () => {
  const ada = await gateway.signUp();
  const order = await open(ada);
  await press(order.checkout_url, "pay");
  await press(order.checkout_url, "settle");
  await orderUntil(ada, order.id, "paid");
  const { subscription } = await billingUntil(ada.rest, ({ tier }) => tier === "api_builder");
  await gateway.admin("extend", "--order", order.id, "--days", "3");
  const { body } = await ada.rest("/v1/billing");
  const added = Date.parse(body.subscription.period_ends_at) - Date.parse(subscription.period_ends_at);
  expect(added).toBe(3 * 1_440 * minute);
  await gateway.admin("refund", "--order", order.id);
  await billingUntil(ada.rest, ({ tier }) => tier === "free");
  expect(await orderUntil(ada, order.id, "paid")).toMatchObject({
    refunded_cents: 9_800,
    refunded_at: expect.any(String),
  });
  expect(JSON.parse(await gateway.admin("orders", "--account", ada.accountId))).toMatchObject({ id: order.id });
}, 60_000);

test.each([
  ["btc", /^bitcoin:\w+\?amount=[\d.]+$/],
  ["ltc", /^litecoin:\w+\?amount=[\d.]+$/],
  ["xmr", /^monero:\w+\?tx_amount=[\d.]+$/],
])("the payment URI of a %s order has the scheme of its currency", async (coin, uri) => {
  const order = await open(await gateway.signUp(), { ...orderRequest, crypto_currency: coin });
  expect(order.payment_uri).toMatch(uri);
});
