import {
  extendOrder,
  refundOrder,
  returnExcess,
  returnLeftover,
  returnPayment,
} from "../../src/billing/order-operator.ts";
import { listOrders } from "../../src/billing/order-store.ts";
import { createJobQueues } from "../../src/jobs/job-queues.ts";
import { createArrangements } from "../../src/limits/arrangements.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { StartRefused } from "../../src/platform/start-refused.ts";
import type { AdminCommand } from "./command.ts";
import { accountOf, asOperator, type Operator } from "./operator.ts";

const clock = systemClock;

const partsOf = ({ bus, audit }: Operator) => ({ clock, audit, arrangements: createArrangements({ clock, bus }) });

function needId(id: string | undefined): string {
  if (!id) throw new StartRefused("--order is required and accepts the id of a crypto order");
  return id;
}

export const listMoney: AdminCommand = {
  help: `orders [--account <name or id>]

  prints the latest 100 crypto orders, a line of JSON each, the newest first; those with an irregularity
  were paid too little, too much or too late, and need a check`,
  options: ["account"],
  run: ({ account }, env) =>
    asOperator(env, async ({ db }) => {
      const accountId = account === undefined ? undefined : (await accountOf(db, account)).id;
      const orders = await listOrders(db, { accountId, status: undefined, before: undefined, limit: 100 });
      return orders.map((order) => JSON.stringify(order)).join("\n");
    }),
};

export const refund: AdminCommand = {
  help: `refund --order <id> [--cents <amount>]

  records a refund that the operator has made in the wallet. A paid order stays paid, and its months end. An
  order whose payment is not settled fails. For an order that was paid too little or too late, the whole
  payment is returned, and the order needs no further check

  --cents <amount>        refunded part of the price (default: all of it)`,
  options: ["order", "cents"],
  run: ({ order, cents: text }, env) =>
    asOperator(env, (operator) =>
      operator.db.transaction(async (tx) => {
        const id = needId(order);
        const cents = text === undefined ? undefined : Number(/^\d{1,9}$/.test(text) ? text : Number.NaN);
        const { audit, bus } = operator;
        if (cents === undefined && (await returnPayment(tx, { audit, jobQueues: createJobQueues({ bus, clock }) }, id)))
          return `${id} fails, since its payment is returned.`;
        if (cents === undefined && (await returnLeftover(tx, { clock, audit }, id)))
          return `The payment of ${id} is returned.`;
        const amount = await refundOrder(tx, partsOf(operator), { id, cents });
        return `${id} is refunded with ${amount} cents, and its months have ended.`;
      }),
    ),
};

export const returnMoney: AdminCommand = {
  help: `return --order <id>

  records that the operator has returned the excess payment of a paid order in the wallet. The order stays
  paid, and needs no more review`,
  options: ["order"],
  run: ({ order }, env) =>
    asOperator(env, (operator) =>
      operator.db.transaction(async (tx) => {
        const id = needId(order);
        await returnExcess(tx, partsOf(operator), id);
        return `Recorded that the excess payment of ${id} was returned.`;
      }),
    ),
};

export const extend: AdminCommand = {
  help: `extend --order <id> --days <number>

  adds days to the remaining prepaid months of a paid order`,
  options: ["order", "days"],
  run: ({ order, days: text }, env) =>
    asOperator(env, (operator) =>
      operator.db.transaction(async (tx) => {
        const days = Number(/^\d{1,3}$/.test(text ?? "") ? text : 0);
        if (days < 1) throw new StartRefused(`--days accepts a whole number from 1 to 999, not ${text ?? "nothing"}`);
        const id = needId(order);
        await extendOrder(tx, partsOf(operator), { id, days });
        return `${id} is extended by ${days} days.`;
      }),
    ),
};
