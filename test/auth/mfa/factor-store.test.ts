import { afterAll, beforeAll, expect, test } from "vitest";
import { insertUser } from "../../../src/accounts/users.ts";
import {
  beginEnrolment,
  countRecoveryCodes,
  endEnrolment,
  removeFactor,
  replaceRecoveryCodes,
  takeCounter,
  useRecoveryCode,
} from "../../../src/auth/mfa/store.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { startTestDatabase, type TestDatabase } from "../../support/database.ts";

const ids = createIds(systemClock);
const now = new Date();

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

let seeds = 0;

/** Inserts a user, and begins an enrolment. */
async function enrolling() {
  const userId = ids.next("usr");
  const begin = () => {
    seeds += 1;
    const seed = Buffer.alloc(20, seeds);
    return database.db.transaction(async (tx) => ({ seed, isBegun: await beginEnrolment(tx, userId, seed, now) }));
  };
  const end = (seed: Buffer) => database.db.transaction((tx) => endEnrolment(tx, { userId, seed, counter: 100 }, now));
  const take = (counter: number) => database.db.transaction((tx) => takeCounter(tx, userId, counter));
  const user = { id: userId, email: `${userId}@example.com`, name: "Ada", passwordHash: null, createdAt: now };
  await database.db.transaction((tx) => insertUser(tx, user));
  return { userId, begin, end, take };
}

test("an enrolment ends once, with the seed of its last start", async () => {
  const { begin, end } = await enrolling();
  const [first, second] = [await begin(), await begin()];
  expect([await end(first.seed), await end(second.seed), await end(second.seed)]).toEqual([false, true, false]);
  expect((await begin()).isBegun).toBe(false);
});

test("a used time step of one user does not change that of another", async () => {
  const [ada, eve] = [await enrolling(), await enrolling()];
  for (const { begin, end } of [ada, eve]) expect(await end((await begin()).seed)).toBe(true);
  expect([await ada.take(101), await ada.take(101), await eve.take(101)]).toEqual([true, false, true]);
});

test("the recovery codes of one user are not those of another", async () => {
  const [ada, eve] = [await enrolling(), await enrolling()];
  const { db } = database;
  const hashes = (first: number) => [Buffer.alloc(32, first), Buffer.alloc(32, first + 1)];
  const use = (userId: string, hash: number) =>
    db.transaction((tx) => useRecoveryCode(tx, userId, Buffer.alloc(32, hash)));
  const left = async () => [await countRecoveryCodes(db, ada.userId), await countRecoveryCodes(db, eve.userId)];
  for (const { begin, end } of [ada, eve]) await end((await begin()).seed);
  await db.transaction((tx) => replaceRecoveryCodes(tx, ada.userId, hashes(1)));
  await db.transaction((tx) => replaceRecoveryCodes(tx, eve.userId, hashes(3)));
  expect(await left()).toEqual([2, 2]);
  expect([await use(ada.userId, 3), await use(eve.userId, 3)]).toEqual([false, true]);
  expect(await left()).toEqual([2, 1]);
  await db.transaction((tx) => removeFactor(tx, ada.userId));
  expect(await left()).toEqual([0, 1]);
});
