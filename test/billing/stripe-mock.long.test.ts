import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { Person } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type ProcessorServer, startProcessorServer } from "../support/processor-server.ts";
import { type StripeMock, startStripeMock } from "../support/stripe-mock.ts";

let stripe: StripeMock;
let processor: ProcessorServer;
let gateway: PeopleGateway;
beforeAll(async () => {
  stripe = await startStripeMock();
  processor = await startProcessorServer(() => gateway?.now() ?? Date.now());
  const { url, secret } = processor;
  const keys = { STRIPE_SECRET_KEY: "sk_test_ofthetestsalone", STRIPE_WEBHOOK_SECRET: secret, STRIPE_URL: url };
  gateway = await startPeopleGateway(keys);
}, 700_000);
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await processor?.[Symbol.asyncDispose]();
  await stripe?.[Symbol.asyncDispose]();
});

/** Acts at the processor and delivers the notices to the gateway. */
async function act(id: string, action: string): Promise<void> {
  for (const { processor: name, headers, body } of await processor.act(id, action)) {
    const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
    expect((await fetch(`${gateway.url}/processors/${name}`, init)).status).toBe(200);
  }
}

async function statusUntil({ accountId }: Person, wanted: string): Promise<void> {
  const select = gateway.app.db.sql
    .selectFrom("card_subscriptions")
    .select("status")
    .where("account_id", "=", accountId);
  const is = async () => (await select.executeTakeFirst())?.status === wanted;
  expect([wanted, await waitUntil(is, { timeout: 90_000, every: 50 })]).toEqual([wanted, true]);
}

async function subscribe(person: Person, tier = "personal"): Promise<string> {
  const { body } = await person.rest("/v1/billing/checkout-session", { tier });
  await act(body.id, "pay");
  await statusUntil(person, "active");
  const { status, body: portal } = await person.rest("/v1/billing/portal-session", {});
  expect(status).toBe(201);
  return portal.id;
}

/** Replaces the IDs in a path by `:id`. */
const kindOf = (method: string, path: string): string =>
  `${method} ${path.split("?", 1)[0]?.replaceAll(/\/[a-z]+(_sched)?_test_\w+/g, "/:id")}`;

test("stripe-mock accepts every request to the card processor", async () => {
  const [ada, bob, eve, dan] = await Promise.all([0, 1, 2, 3].map(() => gateway.signUp()));
  if (!ada || !bob || !eve || !dan) throw new Error("people are missing");
  // Covers a replaced checkout, a refund and a dispute.
  await ada.rest("/v1/billing/checkout-session", { tier: "api_builder", interval: "year" });
  await act(await subscribe(ada), "refund");
  await statusUntil(ada, "ended");
  await act(await subscribe(bob), "dispute");
  await statusUntil(bob, "ended");
  // Covers deleted accounts with a scheduled change and with a failed payment.
  await act(await subscribe(eve, "api_builder"), "lower");
  await act(await subscribe(dan), "fail");
  await statusUntil(dan, "past_due");
  for (const { rest, password } of [eve, dan])
    expect((await rest("/v1/auth/account/delete", { password })).status).toBe(202);
  await statusUntil(eve, "cancelling");
  await statusUntil(dan, "ended");
  gateway.pass(86_400_000);
  const isReconciled = async () => processor.asked.includes("GET /v1/charges");
  expect(await waitUntil(isReconciled, { timeout: 90_000, every: 100 })).toBe(true);

  const kinds = new Set<string>();
  const refused: unknown[] = [];
  for (const { method, path, headers, body } of processor.requests) {
    kinds.add(kindOf(method, path));
    const { host: _, connection: __, "content-length": ___, ...shown } = headers;
    const answer = await fetch(`${stripe.url}${path}`, { method, headers: shown, ...(body !== "" && { body }) });
    if (!answer.ok) refused.push([method, path, body, answer.status, await answer.text()]);
  }
  expect(refused).toEqual([]);
  expect([...kinds].toSorted()).toEqual([
    "DELETE /v1/subscriptions/:id",
    "GET /v1/billing_portal/configurations",
    "GET /v1/charges",
    "GET /v1/charges/:id",
    "GET /v1/disputes",
    "GET /v1/invoice_payments",
    "GET /v1/invoices/:id",
    "GET /v1/prices",
    "GET /v1/prices/:id",
    "GET /v1/subscriptions",
    "POST /v1/billing_portal/configurations",
    "POST /v1/billing_portal/sessions",
    "POST /v1/checkout/sessions",
    "POST /v1/checkout/sessions/:id/expire",
    "POST /v1/customers",
    "POST /v1/prices",
    "POST /v1/subscription_schedules/:id/release",
    "POST /v1/subscriptions/:id",
  ]);
}, 400_000);
