import { expect } from "vitest";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import type { Rest } from "./rest.ts";

/** Presses a button on a page of the sandbox processor and returns the next page. */
export async function press(url: string, action: string): Promise<string> {
  const answer = await fetch(url, { method: "POST", body: new URLSearchParams({ action }) });
  expect(answer.status).toBe(200);
  return answer.text();
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
type Billing = any;

/** Polls an account's billing until it matches, within the account's rate limit. Returns the billing. */
export async function billingUntil(rest: Rest, isSo: (billing: Billing) => boolean): Promise<Billing> {
  let billing: Billing;
  const isThere = await waitUntil(
    async () => {
      billing = (await rest("/v1/billing")).body;
      return isSo(billing);
    },
    { timeout: 20_000, every: 200 },
  );
  if (!isThere) throw new Error(`the billing did not reach the expected state: ${JSON.stringify(billing)}`);
  return billing;
}

const byCard = ({ subscription }: Billing): boolean => subscription?.payment_method === "card";

/** Subscribes to a tier and pays by the sandbox's card, unless the account is already subscribed. */
export async function subscribe(rest: Rest, tier = "api_builder"): Promise<void> {
  if (byCard((await rest("/v1/billing")).body)) return;
  const { status, body } = await rest("/v1/billing/checkout-session", { tier });
  expect(status).toBe(201);
  await press(body.url, "pay");
  await billingUntil(rest, byCard);
}

/** Presses a button of the billing portal. */
export async function pressPortal(rest: Rest, action: string): Promise<string> {
  return press((await rest("/v1/billing/portal-session", {})).body.url, action);
}

/** Ends the subscription of an account, if any. */
export async function unsubscribe(rest: Rest): Promise<void> {
  if (!byCard((await rest("/v1/billing")).body)) return;
  await pressPortal(rest, "end");
  await billingUntil(rest, (billing) => !byCard(billing));
}

/** Cancels the unpaid order of an account, if any. */
export async function cancelOpenOrder(rest: Rest): Promise<void> {
  const { open_crypto_order_id: id } = (await rest("/v1/billing")).body;
  if (id) await rest(`/v1/billing/crypto-orders/${id}/cancel`, {});
}
