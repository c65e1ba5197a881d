import { rm } from "node:fs/promises";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createApp } from "../../src/app/app.ts";
import { readConfig } from "../../src/platform/config.ts";
import { makeDataDirectory, silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { RedisServer } from "../support/redis-server.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { createTestClock } from "../support/test-clock.ts";

const accountId = "acc_jobs";
const tenMinutes = 600_000;

let database: TestDatabase;
let directory: string;
let redis: RedisServer;

beforeAll(async () => {
  [database, redis, directory] = await Promise.all([startTestDatabase(), RedisServer.start(), makeDataDirectory()]);
  await database.db.transaction((tx) => insertAccount(tx, { id: accountId, name: "Jobs", tier: "free" }));
});
afterAll(async () => {
  await redis?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Runs a process of a role for ten minutes of its clock and waits for all that it has started. */
async function liveTenMinutes(role: string): Promise<void> {
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const config = readConfig({
    ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
    ROLE: role,
    HOST: "127.0.0.1",
    DATA_DIR: directory,
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    SECRETS_KEYS: testSecretsKeys,
    SIGNUP: "closed",
  });
  const clock = createTestClock();
  const app = createApp(config, { scope: "gateway", log: silentLog, clock });
  await app.start();
  clock.advance(tenMinutes);
  await app.stop();
}

test.each([
  ["api", ["kept for too long"]],
  ["jobs", []],
])("a process with ROLE %s keeps %j of expired responses", async (role, left) => {
  const { sql: db } = database.db;
  await db.deleteFrom("idempotency_keys").execute();
  await db
    .insertInto("idempotency_keys")
    .values({
      account_id: accountId,
      key: "kept for too long",
      caller: "key_1",
      request_hash: Buffer.alloc(32),
      seed: "s",
      answer: null,
      failure: null,
      created_at: sql<Date>`now() - interval '25 hours'`,
    })
    .execute();
  await liveTenMinutes(role);
  const rows = await db.selectFrom("idempotency_keys").select("key").execute();
  expect(rows.map(({ key }) => key)).toEqual(left);
});
