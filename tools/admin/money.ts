import { lockAccount } from "../../src/accounts/store.ts";
import { moves } from "../../src/billing/order-states.ts";
import { changeOrder, findAnyOrder, listOrders, type OrderRow } from "../../src/billing/order-store.ts";
import { createArrangements } from "../../src/limits/arrangements.ts";
import { endGrant, type Grant } from "../../src/limits/paid-time.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Queryable } from "../../src/platform/postgres/database.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { accountOf, asOperator } from "./operator.ts";

const aDay = 86_400_000;

async function orderOf(db: Queryable, id: string | undefined): Promise<OrderRow> {
  if (!id) throw new StartRefused("--order accepts the id of a crypto order, and is needed");
  const order = await findAnyOrder(db, id);
  if (!order) throw new StartRefused(`there is no order ${id}`);
  return order;
}

export const listMoney: AdminCommand = {
  help: `orders [--account <name or id>]

  prints the latest 100 crypto orders, a line of JSON each, the newest first; those with an irregularity
  were paid too little, too much or too late, and want a look`,
  options: ["account"],
  run: ({ account }) =>
    asOperator(async ({ db }) => {
      const accountId = account === undefined ? undefined : (await accountOf(db, account)).id;
      const orders = await listOrders(db, { accountId, status: undefined, before: undefined, limit: 100 });
      return orders.map((order) => JSON.stringify(order)).join("\n");
    }),
};

export const refund: AdminCommand = {
  help: `refund --order <id> [--cents <amount>]

  notes that a paid order was refunded, which the operator has done in the wallet: its months end, and the
  order stays paid

  --cents <amount>        what was refunded of its price (default: all of it)`,
  options: ["order", "cents"],
  run: ({ order: id, cents }) =>
    asOperator(({ db, bus, audit }) =>
      db.transaction(async (tx) => {
        const { account_id: accountId } = await orderOf(tx, id);
        await lockAccount(tx, accountId);
        const order = await orderOf(tx, id);
        const amount = cents === undefined ? order.amount_cents : Number(/^\d{1,9}$/.test(cents) ? cents : Number.NaN);
        if (!(amount >= 1 && amount <= order.amount_cents))
          throw new StartRefused(`--cents accepts a whole number from 1 to ${order.amount_cents}, not ${cents}`);
        if (order.status !== "paid")
          throw new StartRefused(`${order.id} is ${order.status}: only what is paid is refunded`);
        if (order.refunded_at) throw new StartRefused(`${order.id} is refunded already`);
        const now = new Date(systemClock.now());
        const receipt_revision = order.receipt_revision + 1;
        const changes = { refunded_at: now, refunded_cents: amount, updated_at: now, receipt_revision };
        await changeOrder(tx, order.id, [moves.Settled.to], changes);
        await createArrangements({ clock: systemClock, bus }).serve(tx, accountId, {
          sandbox: order.sandbox,
          apply: (time) => endGrant(time, order.id, now.getTime()),
        });
        const record = { accountId, actor: { kind: "operator" }, action: "crypto_order.refund" } as const;
        audit.record(tx, { ...record, subject: order.id, data: { refunded_cents: amount } });
        return `${order.id} is refunded with ${amount} cents, and its months have ended.`;
      }),
    ),
};

export const extend: AdminCommand = {
  help: `extend --order <id> --days <number>

  lengthens the months of a paid order that have not ended`,
  options: ["order", "days"],
  run: ({ order: id, days }) =>
    asOperator(({ db, bus, audit }) =>
      db.transaction(async (tx) => {
        const count = Number(/^\d{1,3}$/.test(days ?? "") ? days : 0);
        if (count < 1) throw new StartRefused(`--days accepts a whole number from 1 to 999, not ${days ?? "nothing"}`);
        const order = await orderOf(tx, id);
        const lengthen = (grant: Grant): Grant =>
          grant.id === order.id ? { ...grant, leftMs: (grant.leftMs ?? 0) + count * aDay } : grant;
        const arrangements = createArrangements({ clock: systemClock, bus });
        const known = await arrangements.serve(tx, order.account_id);
        const block = known.find((grant) => grant.id === order.id && grant.endedAt === null);
        if (!block) throw new StartRefused(`${order.id} has no months that are left`);
        if (block.leftMs === null) throw new StartRefused(`the months of ${order.id} have not begun: extend them then`);
        await arrangements.serve(tx, order.account_id, {
          sandbox: order.sandbox,
          apply: (time) => ({ ...time, grants: time.grants.map(lengthen) }),
        });
        const record = {
          accountId: order.account_id,
          actor: { kind: "operator" },
          action: "crypto_order.extend",
        } as const;
        audit.record(tx, { ...record, subject: order.id, data: { days: count } });
        return `${order.id} has ${count} days more.`;
      }),
    ),
};
