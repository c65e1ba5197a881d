import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import {
  deleteQuotesBefore,
  findDueOrders,
  findOrder,
  findOrderOfInvoice,
  insertOrder,
  listOrders,
  nextReceiptNumber,
  setOrderCheckAt,
} from "../../src/billing/order-store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";

const ids = createIds(systemClock);
const [ada, eve] = [ids.next("acc"), ids.next("acc")];
const now = new Date("2026-11-24T12:00:00Z");
const hoursAgo = (hours: number) => new Date(now.getTime() - hours * 3_600_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction(async (tx) => {
    for (const id of [ada, eve]) await insertAccount(tx, { id, name: "Test", tier: "free" });
  });
});
afterAll(() => database[Symbol.asyncDispose]());

type Order = Parameters<typeof insertOrder>[1];

async function insert(accountId: string, more: Partial<Order> = {}): Promise<string> {
  const id = ids.next("cro");
  const amounts = { amount_cents: 1_000, currency: "USD", crypto_currency: "btc", crypto_amount: "1" };
  const dates = { created_at: now, updated_at: now, quote_expires_at: now };
  const order = {
    id,
    account_id: accountId,
    status: "quoted",
    tier: "personal",
    months: 1,
    exchange_rate: "1",
  } as const;
  const modes = { livemode: false, sandbox: true };
  await database.db.transaction((tx) => insertOrder(tx, { ...order, ...amounts, ...dates, ...modes, ...more }));
  return id;
}

const paid = (receipt: string): Partial<Order> => ({ status: "paid", paid_at: now, receipt_number: receipt });

test("orders are found by their own account and processor", async () => {
  const id = await insert(ada, { invoice_id: "invoice" });
  const find = (accountId: string) => findOrder(database.db, id, accountId).then((order) => order?.id);
  const findByInvoice = async (sandbox: boolean) => (await findOrderOfInvoice(database.db, "invoice", sandbox))?.id;
  expect([await find(ada), await find(eve)]).toEqual([id, undefined]);
  expect([await findByInvoice(true), await findByInvoice(false)]).toEqual([id, undefined]);
});

test("orders are listed by status, newest first, from before an order", async () => {
  const accountId = ids.next("acc");
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  const [first, second, third] = [await insert(accountId), await insert(accountId, paid("a")), await insert(accountId)];
  const list = async (query: { status?: "quoted"; before?: string }) => {
    const page = { accountId, status: undefined, before: undefined, limit: 10, ...query };
    return (await listOrders(database.db, page)).map(({ id }) => id);
  };
  expect(await list({})).toEqual([third, second, first]);
  expect(await list({ status: "quoted" })).toEqual([third, first]);
  expect(await list({ before: third })).toEqual([second, first]);
});

test("receipts are numbered by account, without gaps for unpaid orders", async () => {
  const accountId = ids.next("acc");
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  const next = () => database.db.transaction((tx) => nextReceiptNumber(tx, accountId, now));
  await insert(accountId);
  await insert(eve, paid("2026-000001"));
  expect(await next()).toBe("2026-000001");
  await insert(accountId, paid("2026-000001"));
  expect(await next()).toBe("2026-000002");
});

test("an order is polled when it is due", async () => {
  const [due, later] = [await insert(ada, { look_at: now }), await insert(ada, { look_at: hoursAgo(-1) })];
  const list = async () => (await findDueOrders(database.db, now)).map(({ id }) => id);
  expect(await list()).toEqual([due]);
  await database.db.transaction(async (tx) => setOrderCheckAt(tx, later, hoursAgo(1)));
  expect((await list()).toSorted()).toEqual([due, later].toSorted());
  await database.db.transaction(async (tx) => setOrderCheckAt(tx, due, null));
  expect(await list()).toEqual([later]);
});

test("expired quotes are deleted, and orders are not", async () => {
  const old = { quote_expires_at: hoursAgo(2) };
  const [expired, order, fresh] = [
    await insert(ada, old),
    await insert(ada, { ...old, ...paid("b") }),
    await insert(ada),
  ];
  await deleteQuotesBefore(database.db, hoursAgo(1));
  const left = await Promise.all([expired, order, fresh].map((id) => findOrder(database.db, id, ada)));
  expect(left.map((each) => each?.id)).toEqual([undefined, order, fresh]);
});
