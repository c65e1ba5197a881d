import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../../src/accounts/store.ts";
import {
  countKeys,
  insertKey,
  type KeyStatus,
  listKeys,
  lockKey,
  lockKeyShared,
  lockKeysCreatedBy,
  type NewKey,
  retireKey,
  revokeExpiredKeys,
  revokeKey,
  transferKey,
} from "../../../src/identity/api-keys/store.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createIds, type Id } from "../../../src/platform/ids.ts";
import { startTestDatabase, type TestDatabase } from "../../support/database.ts";

const ids = createIds(systemClock);
const now = new Date("2026-11-24T12:00:00Z");
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000);

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

async function account(): Promise<Id<"acc">> {
  const id = ids.next("acc");
  await database.db.transaction((tx) => insertAccount(tx, { id, name: "Test", tier: "free" }));
  return id;
}

async function insert(accountId: string, userId: string | null = null, more: Partial<NewKey> = {}): Promise<string> {
  const key = { id: ids.next("key"), accountId, name: "Test", secretHash: Buffer.alloc(32), scopes: [] };
  await database.db.transaction((tx) => insertKey(tx, { ...key, creator: { userId, keyId: null }, ...more }));
  return key.id;
}

const retire = (id: string) =>
  database.db.transaction((tx) => retireKey(tx, id, { id: ids.next("key"), graceEnds: minutesAgo(-60) }));
const revoke = (id: string) => database.db.transaction((tx) => revokeKey(tx, id, now));

async function list(accountId: string, query: { status?: KeyStatus; before?: string } = {}): Promise<string[]> {
  const page = { accountId, status: undefined, before: undefined, limit: 10, now, ...query };
  return (await listKeys(database.db, page)).map(({ id }) => id);
}

test("keys are listed by account, status and position, and counted if they are valid and not rotated", async () => {
  const accountId = await account();
  const [active, lasting] = [await insert(accountId), await insert(accountId, null, { expiresAt: minutesAgo(-1) })];
  const [expiring, expired] = [await insert(accountId), await insert(accountId, null, { expiresAt: now })];
  const [revoked, rotated] = [await insert(accountId), await insert(accountId)];
  await insert(await account());
  await retire(expiring);
  await retire(rotated);
  for (const id of [revoked, rotated]) expect([await revoke(id), await revoke(id)]).toEqual([true, false]);
  expect(await list(accountId)).toEqual([rotated, revoked, expired, expiring, lasting, active]);
  expect(await list(accountId, { before: expired })).toEqual([expiring, lasting, active]);
  expect(await list(accountId, { status: "active" })).toEqual([lasting, active]);
  expect(await list(accountId, { status: "expiring" })).toEqual([expiring]);
  expect(await list(accountId, { status: "expired" })).toEqual([expired]);
  expect(await list(accountId, { status: "revoked" })).toEqual([rotated, revoked]);
  expect(await countKeys(database.db, accountId, now)).toBe(2);
});

test("the valid keys of a user are found, in one account or in all", async () => {
  const [own, other] = [await account(), await account()];
  const [ada, eve] = [ids.next("usr"), ids.next("usr")];
  const [here, there] = [await insert(own, ada), await insert(other, ada)];
  await insert(own, eve);
  await insert(own, ada, { expiresAt: now });
  await revoke(await insert(own, ada));
  const find = async (accountId?: string) => {
    const creator = { userId: ada, ...(accountId !== undefined && { accountId }) };
    const rows = await database.db.transaction((tx) => lockKeysCreatedBy(tx, creator, now));
    return rows.map(({ id }) => id);
  };
  expect([await find(own), await find()]).toEqual([[here], [here, there]]);
});

test("a change applies to one key", async () => {
  const [accountId, other] = [await account(), await account()];
  const [id, kept] = [await insert(accountId), await insert(accountId)];
  const read = (key: string, of = accountId) => database.db.transaction((tx) => lockKey(tx, key, of));
  const before = await read(kept);
  await database.db.transaction((tx) => transferKey(tx, id, { createdBy: "usr_1", scopes: ["account:read"] }));
  await retire(id);
  await revoke(id);
  expect(await read(id)).toMatchObject({ created_by: "usr_1", scopes: ["account:read"], revoked_at: now });
  expect(await read(kept)).toEqual(before);
  expect([await read(id, other), await database.db.transaction((tx) => lockKeyShared(tx, id, other))]).toEqual([
    undefined,
    undefined,
  ]);
});

test("keys that expired before a time are revoked once", async () => {
  const accountId = await account();
  const [old, late] = [
    await insert(accountId, null, { expiresAt: minutesAgo(2) }),
    await insert(accountId, null, { expiresAt: minutesAgo(1) }),
  ];
  const expire = () => revokeExpiredKeys(database.db, { before: minutesAgo(1), now });
  expect([await expire(), await expire()]).toEqual([[old], []]);
  expect(await list(accountId, { status: "expired" })).toEqual([late]);
});
