import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Tier } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { runMoney } from "./money-run.ts";
import { type MoneyScene, startMoneyScene } from "./money-scene.ts";

const minute = 60_000;
const hour = 60 * minute;

let scene: MoneyScene;
beforeAll(async () => {
  scene = await startMoneyScene(Date.parse("2026-01-31T12:00:00Z"));
}, 60_000);
afterAll(() => scene?.[Symbol.asyncDispose]());

test("random payment sequences match the model to the cent and the millisecond", async () => {
  let cents = 0;
  for (const seed of [1, 2, 3]) cents += (await runMoney(scene, seed, 40)).paidCents;
  expect(cents).toBeGreaterThan(0);
});

test.each(["refund", "dispute"])(
  "a returned payment (%s) ends the subscription within a day when its notice is lost",
  async (action) => {
    const account = await scene.newAccount();
    const checkout = await scene.call(account, "createCheckoutSession", { tier: Tier.PERSONAL });
    await scene.sandbox.act(checkout.answer.id, "pay");
    await scene.work();
    const portal = await scene.call(account, "createPortalSession", {});
    await scene.losing(() => scene.sandbox.act(portal.answer.id, action));
    await scene.pass(86_400_000);
    const select = scene.db.sql.selectFrom("card_subscriptions").select("status").where("account_id", "=", account);
    expect(await select.execute()).toEqual([{ status: "ended" }]);
  },
);

/** Opens an order of a new account. Returns it, its invoice, and a function that reads its row after a time. */
async function openOrder() {
  const account = await scene.newAccount();
  const { answer } = await scene.call(account, "checkout", { tier: Tier.PERSONAL, months: 1, cryptoCurrency: "btc" });
  const look = async (milliseconds: number) => {
    await scene.pass(milliseconds);
    const select = scene.db.sql.selectFrom("crypto_orders").select(["status", "crypto_amount_paid as paid"]);
    return select.where("id", "=", answer.id).executeTakeFirstOrThrow();
  };
  return { answer, invoice: answer.checkoutUrl.split("/").at(-1), look };
}

test("an order whose notices are lost is polled, and for two days after its end", async () => {
  const { answer, invoice, look } = await openOrder();
  const lose = (action: string) => scene.losing(async () => void (await scene.sandbox.act(invoice, action)));
  // The first poll is after a minute.
  await look(minute);
  await lose("expire");
  expect(await look(5 * minute - 1)).toMatchObject({ status: "awaiting_payment", paid: "0" });
  expect(await look(1)).toMatchObject({ status: "failed", paid: "0" });
  await lose("pay");
  expect(await look(6 * hour - 1)).toMatchObject({ status: "failed", paid: "0" });
  const { paid } = await look(1);
  expect(Number(paid)).toBe(Number(answer.cryptoAmount));
  await lose("pay");
  const twice = (await look(6 * hour)).paid;
  expect(Number(twice)).toBeCloseTo(2 * Number(paid), 8);
  for (let polls = 2; polls < 8; polls += 1) await look(6 * hour);
  await lose("pay");
  expect((await look(24 * hour)).paid).toBe(twice);
});

test("an unpaid order fails a minute after its expiry if the processor does not end the invoice", async () => {
  const { invoice, look } = await openOrder();
  const late = JSON.stringify({ expirationTime: scene.now() / 1_000 + 7_200 });
  await sql`update sandbox_things set data = data || ${late}::jsonb where id = ${invoice}`.execute(scene.db.sql);
  expect(await look(60.5 * minute)).toMatchObject({ status: "awaiting_payment" });
  expect(await look(5 * minute)).toMatchObject({ status: "failed" });
});
