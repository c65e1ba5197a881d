import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { closeFailing, findFailing, insertEndpoint } from "../../src/webhooks/endpoint-store.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";

const ids = createIds(systemClock);
const accountId = ids.next("acc");
const hour = 3_600_000;
const now = new Date();
const hoursAgo = (hours: number) => new Date(now.getTime() - hours * hour);

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
});
afterAll(() => database[Symbol.asyncDispose]());

/** Inserts an endpoint whose deliveries failed in a period. */
async function insert(name: string, failedFrom?: number, failedUntil = 0, active = true): Promise<string> {
  const id = ids.next("whk");
  const failures = failedFrom !== undefined && {
    failing_since: hoursAgo(failedFrom),
    last_failure_at: hoursAgo(failedUntil),
  };
  const endpoint = { id, account_id: accountId, url: `https://${name}`, events: ["*"], secret: Buffer.alloc(1) };
  await database.db.transaction((tx) => insertEndpoint(tx, { ...endpoint, secret_prefix: "", active, ...failures }));
  return id;
}

test("an endpoint that has failed for long enough is found, and deactivated alone", async () => {
  const [one, other] = [await insert("one", 10, 8), await insert("other", 10, 8)];
  const kept = [await insert("healthy"), await insert("recent", 9), await insert("once", 10, 9.9)];
  await insert("inactive", 10, 8, false);
  const [since, apartMs] = [hoursAgo(9.5), hour];
  const find = async () => (await findFailing(database.db, since, apartMs)).toSorted();
  const close = (id: string) => database.db.transaction((tx) => closeFailing(tx, { id, since, at: now, apartMs }));
  expect(await find()).toEqual([one, other].toSorted());
  for (const id of kept) expect(await close(id)).toBeUndefined();
  expect([(await close(one))?.url, await close(one)]).toEqual(["https://one", undefined]);
  expect(await find()).toEqual([other]);
});
