import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../../src/accounts/store.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createIds } from "../../../src/platform/ids.ts";
import {
  findControl,
  lockControl,
  lockLapsed,
  renewControl,
  writeControl,
} from "../../../src/sessions/control/store.ts";
import { startTestDatabase, type TestDatabase } from "../../support/database.ts";
import { insertSessionRow } from "../../support/session-rows.ts";

const ids = createIds(systemClock);
const accountId = ids.next("acc");
const now = new Date();

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  const worker = { id: "worker", secret_hash: Buffer.alloc(32), address: "127.0.0.1:1", runtimes: [], slots: 3 };
  await database.db.sql
    .insertInto("workers")
    .values({ ...worker, boot_id: "worker", isolation: "flags" })
    .execute();
});
afterAll(() => database[Symbol.asyncDispose]());

async function insert(status: "live" | "destroyed", lapsesInMs: number): Promise<string> {
  const id = ids.next("ses");
  await insertSessionRow(database.db, { id, accountId, workerId: "worker", status });
  const control = { holder: "viewer", epoch: 1n, lapsesAt: new Date(now.getTime() + lapsesInMs), inputAt: null };
  await database.db.transaction((tx) => writeControl(tx, id, control));
  return id;
}

test("control is found by session and account, and lapses in sessions that have not ended", async () => {
  const [lapsed, held, ended] = [await insert("live", 0), await insert("live", 1_000), await insert("destroyed", 0)];
  const other = ids.next("acc");
  for (const id of [lapsed, held, ended]) {
    expect((await findControl(database.db, id, accountId))?.id).toBe(id);
    expect(await findControl(database.db, id, other)).toBeUndefined();
    expect((await database.db.transaction((tx) => lockControl(tx, id, accountId)))?.id).toBe(id);
    expect(await database.db.transaction((tx) => lockControl(tx, id, other))).toBeUndefined();
  }
  const rows = await database.db.transaction((tx) => lockLapsed(tx, now));
  expect(rows.map(({ id }) => id)).toEqual([lapsed]);
});

test("a heartbeat renews control of its holder only", async () => {
  const id = await insert("live", 1_000);
  const renew = (clientId: string) =>
    renewControl(
      database.db,
      { sessionId: id, clientId, heartbeatAt: now, inputAt: now },
      { heartbeat: 30_000, input: 300_000 },
    );
  const left = async () =>
    ((await findControl(database.db, id, accountId))?.control_lapses_at?.getTime() ?? 0) - now.getTime();
  await renew("another viewer");
  expect(await left()).toBe(1_000);
  await renew("viewer");
  expect(await left()).toBe(30_000);
});
