import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom } from "../e2e/support/random.ts";
import type { SentNotice } from "../support/processor-server.ts";
import { type MoneyDeployment, startMoneyDeployment } from "./money-deployment.ts";

/** Concurrent accounts, and the number of gateway kills. */
const [atOnce, kills] = [6, 8];

let scene: MoneyDeployment;
beforeAll(async () => {
  scene = await startMoneyDeployment();
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose]());

function permutations(items: readonly number[]): number[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((first, at) => permutations(items.toSpliced(at, 1)).map((rest) => [first, ...rest]));
}

const idOf = (url: string): string => url.split("/").at(-1) ?? "";

/** Subscribes by card and pays an order. Returns the six notices of both, undelivered. */
async function pay(random: ReturnType<typeof createRandom>): Promise<SentNotice[]> {
  const payer = await scene.payer();
  const order = await payer.call(random.below(2), "/v1/billing/crypto-checkout", {
    tier: "api_scale",
    crypto_currency: "btc",
  });
  expect(order.status).toBe(201);
  const checkout = await payer.call(random.below(2), "/v1/billing/checkout-session", { tier: "api_builder" });
  expect(checkout.status).toBe(201);
  const notices = await scene.processor.act(checkout.body.id, "pay");
  notices.push(...(await scene.processor.act(idOf(order.body.checkout_url), "pay")));
  notices.push(...(await scene.processor.act(idOf(order.body.checkout_url), "settle")));
  expect(notices).toHaveLength(6);
  return notices;
}

test("720 orders of six notices, repeated or lost, create one subscription and one paid order each despite gateway kills", async () => {
  const random = createRandom(11);
  const waiting = permutations([0, 1, 2, 3, 4, 5]);
  const all = waiting.length;
  let [done, killed, lost] = [0, 0, 0];
  const killOne = async () => {
    const gateway = scene.deployment.gateway(killed % 2);
    killed += 1;
    await gateway.kill();
    await gateway.start();
  };
  const goThrough = async () => {
    for (let order = waiting.pop(); order; order = waiting.pop()) {
      const notices = await pay(random);
      for (const at of order) {
        const notice = notices[at];
        if (!notice) throw new Error("there is no such notice");
        if (random.chance(0.1)) lost += 1;
        else for (const gateway of [random.below(2), random.below(2)]) await scene.deliver(notice, gateway);
      }
      done += 1;
      // The other accounts continue during a kill.
      if (done >= ((killed + 0.5) * all) / kills) await killOne();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, goThrough));
  await scene.reconcile();
  // biome-ignore lint/suspicious/noExplicitAny: rows of several tables.
  const rows = async (query: ReturnType<typeof sql<any>>) => (await query.execute(scene.db.sql)).rows;
  const accounts = await rows(sql`
    select a.id, a.tier,
      (select array_agg(status) from card_subscriptions where account_id = a.id) as subscriptions,
      (select array_agg(status) from crypto_orders where account_id = a.id) as orders,
      (select array_agg(kind || ' ' || tier order by kind) from tier_grants where account_id = a.id) as grants,
      (select array_agg(type) from events where account_id = a.id and type like 'crypto.order.%') as events,
      (select array_agg(action order by action) from audit_entries where account_id = a.id
        and action in ('subscription.create', 'subscription.change', 'crypto_order.paid')) as entries
    from accounts a where name like 'acc_%' order by id`);
  expect(accounts).toHaveLength(all);
  for (const { id: _, ...account } of accounts)
    expect(account).toEqual({
      tier: "api_scale",
      subscriptions: ["active"],
      orders: ["paid"],
      events: ["crypto.order.paid"],
      grants: ["block api_scale", "card api_builder"],
      entries: ["crypto_order.paid", "subscription.create"],
    });
  const [{ kept }] = await rows(sql`select count(*)::int as kept from processor_notices`);
  expect(kept).toBe(6 * all - lost);
  console.log(`${all} orders of notices, ${lost} notices lost, ${killed} kills`);
}, 2_400_000);
