import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keyBearers } from "../../src/api-keys/key-bearer.ts";
import { type Bearers, createBearers } from "../../src/identity/bearers.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
let bearers: Bearers;

const ownerOf = async (key: string) => bearers.lookUp(bearers.read(`Bearer ${key}`));

beforeAll(async () => {
  database = await startTestDatabase();
  const bus = createLocalBus();
  const kinds = [keyBearers(database.db)];
  bearers = createBearers({ kinds, bus, clock: systemClock, log: silentLog, registry: createMetrics() });
});
afterAll(() => database[Symbol.asyncDispose]());

/** Runs the command on the test's database. */
function admin(...args: readonly string[]) {
  const sockets = encodeURIComponent(`${database.directory}/postgres/run`);
  const databaseUrl = `postgres://localhost/postgres?user=postgres&host=${sockets}`;
  const options = { env: { ...process.env, DATABASE_URL: databaseUrl }, encoding: "utf8", timeout: 30_000 } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["tools/admin.ts", ...args], options);
  return { status, stdout, stderr };
}

test("should make an account with a key, and further keys for the same account by its name and its id", async () => {
  const first = admin("create-key", "--account", "Ada & sons", "--tier", "api_scale");
  expect(first).toEqual({ status: 0, stdout: expect.stringMatching(/^phk_\S+\n$/), stderr: "" });
  const owner = await ownerOf(first.stdout.trim());
  expect(owner.tier).toBe("api_scale");
  expect(owner.scopes).toContain("sessions:write");
  const second = admin("create-key", "--account", "Ada & sons", "--scopes", "sessions:read,account:read");
  const reader = await ownerOf(second.stdout.trim());
  expect([reader.accountId, ...reader.scopes]).toEqual([owner.accountId, "sessions:read", "account:read"]);
  const third = admin("create-key", "--account", owner.accountId, "--name", "laptop");
  expect((await ownerOf(third.stdout.trim())).accountId).toBe(owner.accountId);
});

test("should say what it can do", () => {
  const { status, stdout } = admin("--help");
  expect([status, stdout]).toEqual([0, expect.stringContaining("create-key --account")]);
});

const refused: [args: string, why: RegExp][] = [
  ["create-key", /--account accepts/],
  ["create-key --account a --tier gold", /--tier accepts free, personal.*not gold/],
  ["create-key --account a --scopes sessions:own", /no scope sessions:own/],
  ["drop-key --account a", /no command drop-key/],
];

test.each(refused)("should refuse %s in one sentence", (args, why) => {
  const { status, stdout, stderr } = admin(...args.split(" "));
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(why);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("should not change the tier of an account that is there", async () => {
  const { sql } = database.db;
  await sql.insertInto("accounts").values({ id: "acc_here", name: "here", tier: "free" }).execute();
  expect(admin("create-key", "--account", "here", "--tier", "enterprise").stderr).toMatch(
    /already, with the tier free/,
  );
  const made = await sql.selectFrom("api_keys").select("id").where("account_id", "=", "acc_here").execute();
  expect(made).toEqual([]);
});
