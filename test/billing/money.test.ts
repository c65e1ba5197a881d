import { afterAll, beforeAll, expect, test } from "vitest";
import { Tier } from "../../src/gen/pilothouse/v1/account_pb.ts";
import { runMoney } from "./money-run.ts";
import { type MoneyScene, startMoneyScene } from "./money-scene.ts";

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
