import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { Person } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type ProcessorServer, type SentNotice, startProcessorServer } from "../support/processor-server.ts";
import { billingUntil } from "../support/sandbox.ts";

let processor: ProcessorServer;
let gateway: PeopleGateway;
beforeAll(async () => {
  processor = await startProcessorServer(() => gateway?.now() ?? Date.now());
  const { url, secret } = processor;
  const keys = { STRIPE_SECRET_KEY: "sk_test_of_the_tests_alone", STRIPE_WEBHOOK_SECRET: secret, STRIPE_URL: url };
  gateway = await startPeopleGateway(keys);
}, 60_000);
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await processor?.[Symbol.asyncDispose]();
});

async function deliver({ processor: name, headers, body }: SentNotice): Promise<number> {
  const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
  return (await fetch(`${gateway.url}/processors/${name}`, init)).status;
}

/** Opens a checkout and pays. Returns the processor's notices. */
async function pay({ rest }: Person): Promise<SentNotice[]> {
  const { body } = await rest("/v1/billing/checkout-session", { tier: "personal" });
  await processor.sandbox.act(body.id, "pay");
  return processor.notices();
}

async function countOf({ rest }: Person, action: string): Promise<number> {
  const { data } = (await rest("/v1/account/audit-log?limit=100")).body;
  return data.filter((entry: { action: string }) => entry.action === action).length;
}

function orders<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((first, at) => orders(items.toSpliced(at, 1)).map((rest) => [first, ...rest]));
}

test.each(orders([0, 1, 2]))("notices in the order %i %i %i, each twice, create one subscription", async (...order) => {
  const ada = await gateway.signUp();
  const notices = await pay(ada);
  expect(notices).toHaveLength(3);
  for (const at of order) {
    const notice = notices[at];
    if (!notice) throw new Error("there is no such notice");
    expect([await deliver(notice), await deliver(notice)]).toEqual([200, 200]);
  }
  const { subscription } = await billingUntil(ada.rest, ({ tier }) => tier === "personal");
  expect(subscription).toMatchObject({ status: "active", amount_cents: 1_900 });
  expect(await countOf(ada, "subscription.create")).toBe(1);
});

test("a payment is found without a notice", async () => {
  const ada = await gateway.signUp();
  await pay(ada);
  gateway.pass(61_000);
  await billingUntil(ada.rest, ({ tier }) => tier === "personal");
});

test("an account that has just paid cannot open a second checkout", async () => {
  const ada = await gateway.signUp();
  await pay(ada);
  const request = { tier: "api_builder" };
  expect(await ada.rest("/v1/billing/checkout-session", request)).toMatchObject({ status: 409 });
  // The refused checkout triggers a lookup of the payment, without a notice.
  await billingUntil(ada.rest, ({ tier }) => tier === "personal");
  const { body: portal, status } = await ada.rest("/v1/billing/portal-session", {});
  expect(status).toBe(201);
  await processor.sandbox.act(portal.id, "end");
  await deliverAll();
  await billingUntil(ada.rest, ({ tier }) => tier === "free");
  expect(await ada.rest("/v1/billing/checkout-session", request)).toMatchObject({ status: 201 });
});

test("the checkout of a deleted account expires although the processor fails at first", async () => {
  const ada = await gateway.signUp();
  const { body } = await ada.rest("/v1/billing/checkout-session", { tier: "personal" });
  const expiry = `/v1/checkout/sessions/${body.id}/expire`;
  const count = () => processor.asked.filter((asked) => asked === `POST ${expiry}`).length;
  let failures = 0;
  const { answer } = processor;
  processor.answer = (path, text) => {
    if (path !== expiry || failures > 0) return answer(path, text);
    failures += 1;
    return "no JSON";
  };
  onTestFinished(() => {
    processor.answer = answer;
  });
  const { status } = await ada.rest("/v1/auth/account/delete", { password: ada.password });
  expect(status).toBe(202);
  await expect.poll(count).toBe(1);
  await expect
    .poll(() => {
      gateway.pass(61_000);
      return count();
    })
    .toBe(2);
});

test("a notice with an old or wrong signature is refused and does not trigger a lookup", async () => {
  const ada = await gateway.signUp();
  const notices = await pay(ada);
  const [notice] = notices;
  if (!notice) throw new Error("there is no notice");
  gateway.pass(240_000);
  // Open payments are polled until they are known, so all notices are delivered first.
  for (const each of notices) expect(await deliver(each)).toBe(200);
  await billingUntil(ada.rest, ({ tier }) => tier === "personal");
  expect(await waitUntil(hasNoWork, { timeout: 20_000, every: 20 })).toBe(true);
  const wrong = notice.headers["stripe-signature"]?.replace(/v1=..../, "v1=0000") ?? "";
  processor.requests.splice(0);
  expect(await deliver({ ...notice, headers: { "stripe-signature": wrong } })).toBe(400);
  expect(await deliver({ ...notice, body: notice.body.replace("customer", "Customer") })).toBe(400);
  gateway.pass(301_000);
  expect(await deliver(notice)).toBe(400);
  // Other requests are allowed: health checks, and lookups of other accounts' open checkouts.
  const { customer } = JSON.parse(notice.body).data.object;
  expect(customer).toMatch(/^cus_/);
  const asked = processor.requests.map(({ path, body }) => path + body);
  expect(asked.filter((each) => each.includes(customer))).toEqual([]);
});

const hasNoWork = async () => (await gateway.app.db.sql.selectFrom("jobs").select("id").execute()).length === 0;

/** Subscribes and returns the ID of the processor's portal session. */
async function subscribed({ rest }: Person): Promise<string> {
  const { body } = await rest("/v1/billing/checkout-session", { tier: "personal" });
  await processor.sandbox.act(body.id, "pay");
  await deliverAll();
  await billingUntil(rest, ({ tier }) => tier === "personal");
  return (await rest("/v1/billing/portal-session", {})).body.id;
}

async function deliverAll(): Promise<void> {
  for (const notice of processor.notices()) expect(await deliver(notice)).toBe(200);
}

test("a higher tier applies once its invoice is paid, a lower tier from the next period", async () => {
  const ada = await gateway.signUp();
  const portal = await subscribed(ada);
  const looks = async (action: string, tier: string, cents: number) => {
    await processor.sandbox.act(portal, action);
    await deliverAll();
    expect(await waitUntil(hasNoWork, { timeout: 20_000, every: 20 })).toBe(true);
    const { body } = await ada.rest("/v1/billing");
    expect([action, body.tier, body.subscription.amount_cents]).toEqual([action, tier, cents]);
  };
  await looks("raise_declined", "personal", 1_900);
  await looks("settle", "api_builder", 4_900);
  await looks("raise", "api_scale", 49_900);
  await looks("lower", "api_scale", 49_900);
  await looks("renew", "api_builder", 4_900);
  expect(await countOf(ada, "subscription.change")).toBe(3);
});

test("a shorter period alone is in the audit log", async () => {
  const ada = await gateway.signUp();
  const portal = await subscribed(ada);
  expect(await waitUntil(hasNoWork, { timeout: 20_000, every: 20 })).toBe(true);
  const { answer } = processor;
  onTestFinished(() => {
    processor.answer = answer;
  });
  const dayEarlier = (_: string, end: string) => `"current_period_end":${Number(end) - 86_400}`;
  processor.answer = (_, body) => body.replaceAll(/"current_period_end":\s*(\d+)/g, dayEarlier);
  // Sends a notice without changing the subscription.
  await processor.sandbox.act(portal, "raise_declined");
  await deliverAll();
  expect(await waitUntil(hasNoWork, { timeout: 20_000, every: 20 })).toBe(true);
  expect(await countOf(ada, "subscription.change")).toBe(1);
});

test("a subscription with an unknown price ends", async () => {
  const ada = await gateway.signUp();
  const portal = await subscribed(ada);
  await processor.sandbox.act(portal, "end");
  const ended = processor.notices();
  // Simulates a price that was changed manually at the processor.
  processor.answer = (path, body) =>
    path.startsWith("/v1/subscriptions") ? body.replaceAll(/"price_test_\w+"/g, '"price_other"') : body;
  for (const notice of ended) await deliver(notice);
  expect(await billingUntil(ada.rest, ({ tier }) => tier === "free")).toMatchObject({ tier: "free" });
  processor.answer = (_, body) => body;
});

test("the sandbox is disabled when a real processor is configured", async () => {
  expect(gateway.app.processors.sandbox).toBeUndefined();
  expect((await fetch(`${gateway.url}/sandbox/cs_test_1`)).status).toBe(404);
});
