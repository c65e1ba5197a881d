import { expect, test } from "vitest";
import { createGreenfield } from "../../src/billing/processors/greenfield.ts";
import { sandboxStore } from "../../src/billing/sandbox/btcpay-invoices.ts";
import { sandboxKey } from "../../src/billing/sandbox/btcpay-routes.ts";
import { createSandbox } from "../../src/billing/sandbox/sandbox.ts";
import { clockAt } from "../support/clock-at.ts";
import { createMemoryStore } from "../support/memory-store.ts";

const { btcPay: transport } = createSandbox({
  store: createMemoryStore(),
  clock: clockAt(Date.now),
  pagesUrl: "http://localhost/sandbox",
  secret: "secret",
  notify: async () => undefined,
});
const base = `/api/v1/stores/${sandboxStore}`;
const headers = { authorization: `token ${sandboxKey}`, "content-type": "application/json" };
const invoice = { amount: "0.5", currency: "BTC" };

async function ask(method: string, path: string, body?: unknown, own: Record<string, string> = {}) {
  const sent = body === undefined ? "" : JSON.stringify(body);
  const answer = await transport({ method, path: `${base}${path}`, headers: { ...headers, ...own }, body: sent });
  return { status: answer.status, body: JSON.parse(answer.body) };
}

test("the sandbox answers every request of the client", async () => {
  const client = createGreenfield({ store: sandboxStore, apiKey: sandboxKey, transport });
  expect(Number(await client.rate("btc", "usd"))).toBeGreaterThan(0);
  const wanted = {
    id: "ord_1",
    amount: "0.00104268",
    crypto: "btc",
    redirectUrl: "http://localhost:8080/billing/done",
  };
  const { id } = await client.createInvoice(wanted);
  expect((await client.findInvoice("ord_1"))?.id).toBe(id);
  expect(await client.payment(id, "btc")).toMatchObject({ paid: "0" });
  await client.invalidate(id);
  expect(await client.invoice(id)).toMatchObject({ status: "Invalid", amount: "0.00104268" });
});

test.each([
  ["an unknown field", { ...invoice, orderId: "ord_1" }, "orderId"],
  ["an unknown nested field", { ...invoice, checkout: { expiresIn: 5 } }, "checkout.expiresIn"],
  ["a negative amount", { ...invoice, amount: "-1" }, "amount"],
  ["an invalid amount", { ...invoice, amount: "1,5" }, "amount"],
  ["no amount", { currency: "BTC" }, "amount"],
  ["no currency", { amount: "1" }, "currency"],
  ["invalid minutes", { ...invoice, checkout: { expirationMinutes: 0 } }, "checkout.expirationMinutes"],
  ["an invalid URL", { ...invoice, checkout: { redirectURL: "/back" } }, "checkout.redirectURL"],
  ["a tolerance above 100 %", { ...invoice, checkout: { paymentTolerance: 101 } }, "checkout.paymentTolerance"],
  ["payment methods as text", { ...invoice, checkout: { paymentMethods: "BTC-CHAIN" } }, "checkout.paymentMethods"],
])("an invoice with %s is refused", async (_, body, path) => {
  expect(await ask("POST", "/invoices", body)).toMatchObject({ status: 422, body: [{ path }] });
});

test("the sandbox refuses invalid requests with the status of BTCPay Server", async () => {
  expect((await ask("POST", "/invoices", invoice)).status).toBe(200);
  const { body } = await ask("POST", "/invoices", invoice);
  expect((await ask("POST", "/invoices", invoice, { authorization: "token another" })).status).toBe(401);
  expect((await ask("GET", `/invoices/${body.id}`, undefined, { authorization: "" })).status).toBe(401);
  expect((await ask("POST", "/invoices", invoice, { "content-type": "text/plain" })).status).toBe(415);
  expect((await ask("POST", "/invoices", { ...invoice, currency: "DOGE" })).status).toBe(400);
  const lightning = { ...invoice, checkout: { paymentMethods: ["BTC-LN"] } };
  expect((await ask("POST", "/invoices", lightning)).status).toBe(400);
  expect((await ask("GET", "/invoices/inv_none")).status).toBe(404);
  expect((await ask("GET", "/invoices?order=ord_1")).status).toBe(422);
  for (const status of ["New", "Expired", undefined])
    expect((await ask("POST", `/invoices/${body.id}/status`, { status })).status).toBe(422);
});
