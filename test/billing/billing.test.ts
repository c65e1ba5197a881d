import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mailAbout, type Person } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { billingUntil, press, pressPortal, subscribe, unsubscribe } from "../support/sandbox.ts";

const day = 86_400_000;

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

const tierOf = async ({ rest }: Person): Promise<string> => (await rest("/v1/account/me")).body.account.tier;

test("an account without payments has the free tier", async () => {
  const ada = await gateway.signUp();
  const { status, body } = await ada.rest("/v1/billing");
  expect(status).toBe(200);
  expect(body).toMatchObject({ tier: "free", subscription: null, open_crypto_order_id: null, livemode: false });
  expect(body.quotas.map(({ quota }: { quota: string }) => quota)).toContain("session_minutes");
});

test("a card payment grants the tier, and the end of the subscription removes it", async () => {
  const ada = await gateway.signUp();
  const { status, body } = await ada.rest("/v1/billing/checkout-session", { tier: "api_builder", interval: "year" });
  expect(status).toBe(201);
  expect(body).toMatchObject({ id: expect.stringMatching(/^cs_test_/), livemode: false });
  expect(Math.round((Date.parse(body.expires_at) - gateway.now()) / 3_600_000)).toBe(24);
  expect(await (await fetch(body.url)).text()).toContain("490.00 USD a year");
  expect(await press(body.url, "decline")).toContain("Pay by card");
  expect(await tierOf(ada)).toBe("free");
  expect(await press(body.url, "pay")).toContain("complete");
  const billing = await billingUntil(ada.rest, ({ tier }) => tier === "api_builder");
  const bought = { tier: "api_builder", status: "active", payment_method: "card", interval: "year" };
  expect(billing.subscription).toMatchObject({ ...bought, amount_cents: 49_000, currency: "usd" });
  expect(await tierOf(ada)).toBe("api_builder");
  const mail = await mailAbout(gateway.mailbox, ada.email, "You have subscribed");
  expect(mail.text).toContain("490.00 USD");
  const again = await ada.rest("/v1/billing/checkout-session", { tier: "personal" });
  expect(again).toMatchObject({ status: 409 });
  await pressPortal(ada.rest, "cancel");
  await billingUntil(ada.rest, ({ subscription }) => subscription.status === "cancelling");
  expect(await tierOf(ada)).toBe("api_builder");
  await pressPortal(ada.rest, "resume");
  await billingUntil(ada.rest, ({ subscription }) => subscription.status === "active");
  await unsubscribe(ada.rest);
  expect(await tierOf(ada)).toBe("free");
  await mailAbout(gateway.mailbox, ada.email, "Your subscription has ended");
  const { data } = (await ada.rest("/v1/account/audit-log")).body;
  const actions = data.map(({ action }: { action: string }) => action);
  expect(actions.filter((action: string) => action === "subscription.create")).toHaveLength(1);
  expect(actions).toContain("subscription.checkout");
});

test("a failed payment keeps the tier for 14 days", async () => {
  const ada = await gateway.signUp();
  await subscribe(ada.rest, "personal");
  await pressPortal(ada.rest, "fail");
  await billingUntil(ada.rest, ({ subscription }) => subscription.status === "past_due");
  expect(await tierOf(ada)).toBe("personal");
  await mailAbout(gateway.mailbox, ada.email, "A payment has failed");
  await pressPortal(ada.rest, "renew");
  await billingUntil(ada.rest, ({ subscription }) => subscription.status === "active");
  await mailAbout(gateway.mailbox, ada.email, "We have received your payment");
  await pressPortal(ada.rest, "fail");
  await billingUntil(ada.rest, ({ subscription }) => subscription.status === "past_due");
  const grants = gateway.app.db.sql.selectFrom("tier_grants").select("until").where("account_id", "=", ada.accountId);
  const { until } = await grants.executeTakeFirstOrThrow();
  expect(Math.ceil(((until?.getTime() ?? 0) - gateway.now()) / day)).toBe(14);
  gateway.pass(14 * day + 1_000);
  const { email, password } = ada;
  const { body } = await ada.rest("/v1/auth/login", { email, password });
  const rest: Person["rest"] = (path, sent, init) =>
    ada.rest(path, sent, { ...init, headers: { authorization: `Bearer ${body.access_token}` } });
  await billingUntil(rest, ({ tier }) => tier === "free");
});

test("the subscription page of the sandbox shows the receipt of the last payment", async () => {
  const ada = await gateway.signUp();
  await subscribe(ada.rest, "personal");
  const { body } = await ada.rest("/v1/billing/portal-session", {});
  const shown = async () => (await fetch(body.url)).text();
  expect(await shown()).toMatch(/Receipt in_\w+: 19\.00 USD paid by card\./);
  await pressPortal(ada.rest, "fail");
  expect(await shown()).not.toContain("Receipt");
});

test("a full refund ends the subscription", async () => {
  const ada = await gateway.signUp();
  await subscribe(ada.rest);
  await pressPortal(ada.rest, "refund");
  await billingUntil(ada.rest, ({ tier }) => tier === "free");
});

test("the higher of the operator's override and the paid tier applies", async () => {
  const ada = await gateway.signUp();
  await subscribe(ada.rest, "personal");
  await gateway.admin("set-tier", "--account", ada.accountId, "--tier", "api_scale");
  await billingUntil(ada.rest, ({ tier }) => tier === "api_scale");
  await gateway.admin("set-tier", "--account", ada.accountId, "--tier", "free");
  await billingUntil(ada.rest, ({ tier }) => tier === "personal");
});

test("a checkout session is refused with an invalid success_url", async () => {
  const ada = await gateway.signUp();
  const request = { tier: "personal", success_url: "javascript:alert(1)" };
  expect(await ada.rest("/v1/billing/checkout-session", request)).toMatchObject({
    status: 400,
    body: { errors: [{ field: "success_url" }] },
  });
  expect(await ada.rest("/v1/billing/portal-session", {})).toMatchObject({ status: 409 });
});

test("an unsigned, wrongly signed or oversized notice is refused", async () => {
  const event = JSON.stringify({ id: "evt_1", type: "invoice.paid", data: { object: { customer: "cus_1" } } });
  const at = Math.floor(gateway.now() / 1_000);
  const signed = createHmac("sha256", "another secret").update(`${at}.${event}`).digest("hex");
  const send = (body: string, headers: Record<string, string>) =>
    fetch(`${gateway.url}/processors/stripe`, { method: "POST", body, headers });
  expect((await send(event, {})).status).toBe(400);
  expect((await send(event, { "stripe-signature": `t=${at},v1=${signed}` })).status).toBe(400);
  expect((await send("x".repeat(1_048_576), { "stripe-signature": "t=1,v1=00" })).status).toBe(400);
});
