import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import {
  claimSave,
  endUse,
  findHolder,
  findOutstanding,
  findOverdue,
  findPlacedUse,
  findUsedVersion,
  insertUse,
  renewClaim,
  settleLateUses,
  settleUse,
} from "../../src/profiles/use-store.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { insertSessionRow } from "../support/session-rows.ts";

const ids = createIds(systemClock);
const accountId = ids.next("acc");
const minute = 60_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
  const { db } = database;
  await db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  const worker = { secret_hash: Buffer.alloc(32), address: "127.0.0.1:1", runtimes: [], slots: 9, isolation: "flags" };
  for (const id of ["own", "other"])
    await db.sql
      .insertInto("workers")
      .values({ id, boot_id: id, ...worker })
      .execute();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Inserts a profile. */
async function insertProfile(): Promise<string> {
  const id = ids.next("prf");
  await database.db.sql.insertInto("profiles").values({ id, account_id: accountId, name: id, labels: "{}" }).execute();
  return id;
}

/** Inserts a session that uses a profile. Returns the session's id. */
async function use(profileId: string, version = "1", workerId = "own"): Promise<string> {
  const id = ids.next("ses");
  await insertSessionRow(database.db, { id, accountId, workerId, status: "live" });
  const row = { session_id: id, profile_id: profileId, account_id: accountId, version };
  await database.db.transaction((tx) => insertUse(tx, row));
  return id;
}

const end = (sessionId: string, heldForMs: number, dueInMs: number) =>
  database.db.transaction((tx) => endUse(tx, sessionId, heldForMs, dueInMs));
const holderOf = async (profileId: string) =>
  (await database.db.transaction((tx) => findHolder(tx, profileId)))?.session_id;

test("a profile is held by its own session, and after the session's end for a limited time", async () => {
  const [own, other] = [await insertProfile(), await insertProfile()];
  const [session, foreign] = [await use(own), await use(other)];
  expect([await holderOf(own), await holderOf(other)]).toEqual([session, foreign]);
  const before = Date.now();
  await end(session, minute, minute);
  const holder = await database.db.transaction((tx) => findHolder(tx, own));
  expect(holder?.session_id).toBe(session);
  expect((holder?.held_until?.getTime() ?? 0) - before).toBeGreaterThan(minute / 2);
  expect((holder?.held_until?.getTime() ?? 0) - before).toBeLessThan(5 * minute);
  await end(session, -1, minute);
  expect([await holderOf(own), await holderOf(other)]).toEqual([undefined, foreign]);
});

test("a use is found and settled by its session", async () => {
  const profile = await insertProfile();
  const [one, other] = [await use(profile, "3"), await use(profile, "4", "other")];
  const { db } = database;
  expect([await findUsedVersion(db, one), await findUsedVersion(db, ids.next("ses"))]).toEqual([3n, 0n]);
  expect(await findPlacedUse(db, other)).toMatchObject({ session_id: other, version: "4", worker_id: "other" });
  const outstanding = async (sessions: string[]) =>
    (await findOutstanding(db, "own", sessions)).map(({ session_id }) => session_id);
  expect([await outstanding([one, other]), await outstanding([other])]).toEqual([[one], []]);
  const settle = async () => (await db.transaction((tx) => settleUse(tx, one)))?.version;
  expect([await settle(), await settle(), await findUsedVersion(db, other)]).toEqual(["3", undefined, 4n]);
});

test("late uses of one profile are settled, and overdue saves are found", async () => {
  const [own, other] = [await insertProfile(), await insertProfile()];
  const [running, late, overdue, foreign] = [await use(own), await use(own), await use(own), await use(other)];
  await end(late, -1, minute);
  for (const id of [overdue, foreign]) await end(id, -1, -1);
  expect((await findOverdue(database.db, 10)).toSorted()).toEqual([overdue, foreign].toSorted());
  expect(await findOverdue(database.db, 1)).toHaveLength(1);
  const settled = await database.db.transaction((tx) => settleLateUses(tx, own));
  expect(settled.map(({ session_id }) => session_id).toSorted()).toEqual([late, overdue].toSorted());
  expect(await holderOf(own)).toBe(running);
  expect(await findOverdue(database.db, 10)).toEqual([foreign]);
});

test("a save is claimed by one gateway, until the claim expires or is released", async () => {
  const profile = await insertProfile();
  const [one, other] = [await use(profile), await use(profile)];
  const claim = (sessionId: string, forMs = minute) => claimSave(database.db, sessionId, forMs);
  expect([await claim(one, -1), await claim(one), await claim(one)]).toEqual([true, true, false]);
  expect([await claim(other), await claim(other)]).toEqual([true, false]);
  await renewClaim(database.db, one, 0);
  expect([await claim(other), await claim(one)]).toEqual([false, true]);
  await renewClaim(database.db, one, -1);
  expect([await claim(one, -1), await claim(one)]).toEqual([true, true]);
});
