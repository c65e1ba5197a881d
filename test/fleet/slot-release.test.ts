import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { lockIncarnation, releaseAllSlots, releaseLostSlots, releaseSlots } from "../../src/fleet/store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { insertSessionRow } from "../support/session-rows.ts";

const ids = createIds(systemClock);
const accountId = ids.next("acc");

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
});
afterAll(() => database[Symbol.asyncDispose]());

const names: Record<string, string> = {};

/** Inserts a session that holds a slot. */
function insertHolder(name: string, workerId: string, status: "live" | "destroyed" | "errored"): Promise<void> {
  const id = ids.next("ses");
  names[id] = name;
  return insertSessionRow(database.db, { id, accountId, workerId, status });
}

/** Names of the sessions that hold a slot. */
async function holders(): Promise<string[]> {
  const rows = await database.db.sql.selectFrom("sessions").select("id").where("slot_held", "=", true).execute();
  return rows.map(({ id }) => names[id] ?? id).toSorted();
}

beforeEach(async () => {
  const { sql: db } = database.db;
  await db.deleteFrom("sessions").execute();
  await db.deleteFrom("workers").execute();
  const worker = { secret_hash: Buffer.alloc(32), address: "127.0.0.1:1", runtimes: ["chromium"], slots: 4 };
  for (const [id, incarnation] of [
    ["own", 7],
    ["other", 8],
  ] as const) {
    await db
      .insertInto("workers")
      .values({ id, ...worker, boot_id: id, isolation: "flags" })
      .execute();
    const lease_until = sql<Date>`now() + interval '1 minute'`;
    await db.insertInto("worker_leases").values({ worker_id: id, incarnation, lease_until }).execute();
    for (const status of ["live", "destroyed", "errored"] as const) await insertHolder(`${id} ${status}`, id, status);
  }
});

const all = ["other destroyed", "other errored", "other live", "own destroyed", "own errored", "own live"];
const without = (...freed: string[]) => all.filter((each) => !freed.includes(each));

test("a heartbeat frees the slots of ended sessions of its worker that it does not report", async () => {
  expect(await releaseSlots(database.db, { id: "own", incarnation: 8n }, [])).toBe(0);
  expect(await holders()).toEqual(all);
  expect(await releaseSlots(database.db, { id: "own", incarnation: 7n }, Object.keys(names))).toBe(0);
  const reported = Object.keys(names).filter((id) => names[id] === "own destroyed");
  expect(await releaseSlots(database.db, { id: "own", incarnation: 7n }, reported)).toBe(1);
  expect(await holders()).toEqual(without("own errored"));
  expect(await releaseSlots(database.db, { id: "own", incarnation: 7n }, reported)).toBe(0);
});

test("a sweep frees the slots of ended sessions of lost workers", async () => {
  const lost = { lost_at: sql<Date>`now()` };
  await database.db.sql.updateTable("worker_leases").set(lost).where("worker_id", "=", "own").execute();
  await database.db.transaction(releaseLostSlots);
  expect(await holders()).toEqual(without("own destroyed", "own errored"));
});

test("a restart frees the slots of ended sessions of the worker", async () => {
  await database.db.transaction((tx) => releaseAllSlots(tx, "own"));
  expect(await holders()).toEqual(without("own destroyed", "own errored"));
});

test("an incarnation is that of its own worker", async () => {
  const isCurrent = (id: string, incarnation: bigint) =>
    database.db.transaction((tx) => lockIncarnation(tx, id, incarnation));
  expect([await isCurrent("own", 7n), await isCurrent("own", 8n)]).toEqual([true, false]);
});
