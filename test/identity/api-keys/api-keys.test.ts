import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { insertAccount } from "../../../src/accounts/store.ts";
import { type ApiKeys, createApiKeys, createKey as makeKey } from "../../../src/identity/api-keys/api-keys.ts";
import { ensureDeveloperKey } from "../../../src/identity/api-keys/developer-key.ts";
import { keyBearers } from "../../../src/identity/api-keys/key-bearer.ts";
import { writeToken } from "../../../src/identity/api-keys/token.ts";
import { type Bearers, createBearers } from "../../../src/identity/bearers.ts";
import { createLocalBus } from "../../../src/platform/bus.ts";
import { createIds } from "../../../src/platform/ids.ts";
import { createMetrics } from "../../../src/platform/metrics.ts";
import { type Database, openDatabase } from "../../../src/platform/postgres/database.ts";
import { clockAt } from "../../support/clock-at.ts";
import { makeDataDirectory, silentLog, startTestDatabase, type TestDatabase } from "../../support/database.ts";

let now = Date.now();
const clock = clockAt(() => now);
const ids = createIds(clock);
const bus = createLocalBus();
const accountId = ids.next("acc");
let database: TestDatabase;
let keys: ApiKeys;
let bearers: Bearers;

const bearersOver = (db: Database): Bearers =>
  createBearers({ kinds: [keyBearers(db)], bus, clock, log: silentLog, registry: createMetrics() });
const authenticate = async (header: string | undefined) => bearers.lookUp(bearers.read(header));

beforeAll(async () => {
  database = await startTestDatabase();
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Test", tier: "free" }));
  keys = createApiKeys({ db: database.db, bus, clock, log: silentLog });
  bearers = bearersOver(database.db);
  bearers.start();
});

afterAll(async () => {
  await bearers.stop();
  await database[Symbol.asyncDispose]();
});

const createKey = (request: { scopes?: string[]; expiresAt?: Date } = {}) =>
  database.db.transaction((tx) => makeKey(tx, ids, { accountId, name: "test", ...request }));

describe("an invalid key over HTTP", () => {
  const id = "01jd2z5r1v7k9m3q8t4w6x0y2b";
  const secret = "0".repeat(40);
  const cases: [what: string, header: string | undefined, slug: string][] = [
    ["no header", undefined, "unauthorized"],
    ["an empty header", "", "unauthorized"],
    ["another scheme", "Basic dTpw", "unauthorized"],
    ["only a scheme", "Bearer", "unauthorized"],
    ["two tokens", `Bearer phk_${id}_${secret} more`, "unauthorized"],
    ["a wrong prefix", `Bearer sk_${id}_${secret}`, "invalid-key"],
    ["a key cut short", `Bearer phk_${id}_${secret.slice(1)}`, "invalid-key"],
    ["a letter outside the alphabet", `Bearer phk_${id}_${"u".repeat(40)}`, "invalid-key"],
    ["an unknown key", `Bearer phk_${id}_${secret}`, "invalid-key"],
  ];
  test.each(cases)("answers %s with %s: %s", async (_what, header, slug) => {
    await expect(authenticate(header)).rejects.toMatchObject({ slug });
  });
});

test("returns the owner of a valid key, and rejects its id with another secret", async () => {
  const { id, token } = await createKey({ scopes: ["sessions:read"] });
  const principal = await authenticate(`bearer ${token}`);
  expect(principal).toEqual({
    kind: "key",
    name: "test",
    accountId,
    keyId: id,
    tier: "free",
    overrides: [],
    scopes: new Set(["sessions:read"]),
  });
  expect(bearers.peek(bearers.read(`Bearer ${token}`))).toBe(principal);
  const other = writeToken({ id, secret: "0".repeat(40) });
  await expect(authenticate(`Bearer ${other}`)).rejects.toMatchObject({ slug: "invalid-key" });
  expect(bearers.peek(bearers.read(`Bearer ${other}`))).toBeUndefined();
});

test("rejects a revoked key immediately", async () => {
  const { id, token } = await createKey();
  await authenticate(`Bearer ${token}`);
  await database.db.transaction((tx) => keys.revoke(tx, id));
  expect(bearers.peek(bearers.read(`Bearer ${token}`))).toBeUndefined();
  await expect(authenticate(`Bearer ${token}`)).rejects.toMatchObject({ slug: "revoked-key" });
});

test("reads changed accounts again", async () => {
  const { token } = await createKey();
  expect(await authenticate(`Bearer ${token}`)).toMatchObject({ tier: "free" });
  await database.db.sql.updateTable("accounts").set({ tier: "personal" }).where("id", "=", accountId).execute();
  expect(await authenticate(`Bearer ${token}`)).toMatchObject({ tier: "free" });
  bus.publish("bearer-changed", accountId);
  expect(await authenticate(`Bearer ${token}`)).toMatchObject({ tier: "personal" });
});

test("answers expired-key, and revoked-key after the daily sweep", async () => {
  const soon = await createKey({ expiresAt: new Date(now + 1_000) });
  await authenticate(`Bearer ${soon.token}`);
  now += 1_000;
  await expect(authenticate(`Bearer ${soon.token}`)).rejects.toMatchObject({ slug: "expired-key" });
  await keys.sweep();
  await expect(authenticate(`Bearer ${soon.token}`)).rejects.toMatchObject({ slug: "expired-key" });
  const recent = await createKey({ expiresAt: new Date(Date.now() - 23 * 3_600_000) });
  await keys.sweep();
  await expect(authenticate(`Bearer ${recent.token}`)).rejects.toMatchObject({ slug: "expired-key" });
  const old = await createKey({ expiresAt: new Date(Date.now() - 25 * 3_600_000) });
  await expect(authenticate(`Bearer ${old.token}`)).rejects.toMatchObject({ slug: "expired-key" });
  await keys.sweep();
  await expect(authenticate(`Bearer ${old.token}`)).rejects.toMatchObject({ slug: "revoked-key" });
});

test("keeps and repairs the developer's key", async () => {
  const { db } = database;
  const directory = await makeDataDirectory();
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, "dev-api-key");
  const first = await ensureDeveloperKey(db, ids, directory);
  expect(await readFile(file, "utf8")).toBe(`${first}\n`);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await authenticate(`Bearer ${first}`)).toMatchObject({ tier: "enterprise" });
  expect(await ensureDeveloperKey(db, ids, directory)).toBe(first);

  // As after a crash between writing the file and the row.
  await db.sql.deleteFrom("api_keys").where("name", "=", "developer key").execute();
  expect(await ensureDeveloperKey(db, ids, directory)).toBe(first);
  await writeFile(file, "phk_half");
  const repaired = await ensureDeveloperKey(db, ids, directory);
  expect(await authenticate(`Bearer ${repaired}`)).toMatchObject({ tier: "enterprise" });
  const accounts = await db.sql.selectFrom("accounts").select("id").where("developer", "=", true).execute();
  expect(accounts).toHaveLength(1);
});

test("accepts cached keys during a PostgreSQL outage, and reports the outage for others", async () => {
  const elsewhere = openDatabase({ url: "postgres://nobody@127.0.0.1:1/none" }, silentLog);
  const { token } = await createKey();
  let db = database.db;
  const switching = { ...database.db, named: (...args: Parameters<typeof db.named>) => db.named(...args) };
  const cut = bearersOver(switching as typeof db);
  const lookUp = async (key: string) => cut.lookUp(cut.read(`Bearer ${key}`));
  await lookUp(token);
  db = elsewhere;
  expect(await lookUp(token)).toMatchObject({ accountId });
  const { token: unknown } = await createKey();
  await expect(lookUp(unknown)).rejects.toMatchObject({ slug: "internal", retryAfter: 1 });
  await elsewhere.close();
});
