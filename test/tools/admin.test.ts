import { spawnSync } from "node:child_process";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { migrations } from "../../src/app/migrations.ts";
import { keyBearers } from "../../src/identity/api-keys/key-bearer.ts";
import { type Bearers, createBearers } from "../../src/identity/bearers.ts";
import { createLocalBus } from "../../src/platform/bus.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { runAdminHere } from "../support/admin.ts";
import { databaseUrl, silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

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
const admin = (...args: readonly string[]) => runAdminHere({ DATABASE_URL: database.url }, ...args);

test("prints its result or the reason of a failure as a process of its own", async () => {
  const run = (...args: readonly string[]) => {
    const options = { env: { ...process.env, DATABASE_URL: database.url }, encoding: "utf8", timeout: 60_000 } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["tools/admin.ts", ...args], options);
    return { status, stdout, stderr };
  };
  const made = run("create-key", "--account", "By hand");
  expect(made).toEqual({ status: 0, stdout: expect.stringMatching(/^phk_\S+\n$/), stderr: "" });
  expect((await ownerOf(made.stdout.trim())).tier).toBe("free");
  expect(run("create-key")).toEqual({ status: 1, stdout: "", stderr: expect.stringMatching(/^pilothouse: --account/) });
});

test("creates an account with a key, and further keys for the account by its name and its id", async () => {
  const first = await admin("create-key", "--account", "Ada & sons", "--tier", "api_scale");
  expect(first).toEqual({ status: 0, stdout: expect.stringMatching(/^phk_\S+\n$/), stderr: "" });
  const owner = await ownerOf(first.stdout.trim());
  expect(owner.tier).toBe("api_scale");
  expect(owner.scopes).toContain("sessions:write");
  const second = await admin("create-key", "--account", "Ada & sons", "--scopes", "sessions:read,account:read");
  const reader = await ownerOf(second.stdout.trim());
  expect([reader.accountId, ...reader.scopes]).toEqual([owner.accountId, "sessions:read", "account:read"]);
  const third = await admin("create-key", "--account", owner.accountId, "--name", "laptop");
  expect((await ownerOf(third.stdout.trim())).accountId).toBe(owner.accountId);
});

test("prints help for all commands and for each one", async () => {
  const { status, stdout } = await admin("--help");
  expect(status).toBe(0);
  const own = await admin("override", "--help");
  expect([own.status, own.stdout]).toEqual([0, expect.stringMatching(/^npm run admin -- override --account/)]);
  expect(stdout).toContain(own.stdout.trim());
  expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120);
});

const refused: [args: string, why: RegExp][] = [
  ["create-key", /--account is required and accepts/],
  ["create-key --account a --tier gold", /--tier accepts free, personal.*not gold/],
  ["create-key --account a --scopes sessions:own", /no scope sessions:own/],
  ["drop-key --account a", /expected a command \(create-key, .*\), got drop-key/],
  ["set-tier --account nobody --tier free", /no account nobody/],
  ["override --account a --limit minutes", /--limit accepts global, .*session_minutes.*not minutes/],
  ["override --account a --limit profiles --value -1", /--value/],
  ["override --account a --limit global --value 0", /--value accepts a whole number from 1/],
  ["override --account a --limit profiles --value 5 --until tomorrow", /--until accepts a future time/],
  ["disable-account --account nobody", /no account nobody/],
  ["remove-mfa", /--user is required and accepts/],
  ["remove-mfa --user nobody@example.com", /no user nobody@example.com/],
  ["incident open", /--title is required and accepts/],
  ["incident open --title a --health bad", /--health accepts degraded, .*not bad/],
  ["incident open --title a --health degraded --text b --components all", /--components accepts api, .*not all/],
  ["incident close --text a --id inc_none", /--id accepts an incident that is not over \(none\), not inc_none/],
  ["maintenance --title a --text b --components api --until 1h --from 2h", /--until accepts a time after --from/],
  ["drain", /expected one worker id, got 0/],
  ["drain wrk_1 wrk_2", /expected one worker id, got 2/],
  ["drain wrk_none", /there is no worker wrk_none: `npm run admin -- workers` prints all/],
  ["publish-terms --revision a/b", /--revision is required and accepts/],
  ["publish-terms --revision a --url javascript:0", /--url is required and accepts/],
  ["publish-terms --revision a --url https://example.com", /--effective accepts a future time/],
];

test.each(refused)("refuses %s in one sentence", async (args, why) => {
  const { status, stdout, stderr } = await admin(...args.split(" "));
  expect([status, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(why);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("does not change the tier of an existing account", async () => {
  const { accountId } = await ownerOf((await admin("create-key", "--account", "here")).stdout.trim());
  expect((await admin("create-key", "--account", "here", "--tier", "enterprise")).stderr).toMatch(
    /already exists, with the tier free/,
  );
  const made = database.db.sql.selectFrom("api_keys").select("id").where("account_id", "=", accountId);
  expect(await made.execute()).toHaveLength(1);
});

const entries = async (subject: string) => {
  const log = database.db.sql.selectFrom("audit_entries").select(["action", "data", "actor_kind"]);
  return await log.where("account_id", "=", subject).orderBy("id").execute();
};

test("changes and lists the limits of an account, and writes each change into its audit log", async () => {
  const { accountId } = await ownerOf((await admin("create-key", "--account", "Audited")).stdout.trim());
  expect((await admin("set-tier", "--account", "Audited", "--tier", "personal")).stdout).toMatch(
    /has the tier personal; .*free/,
  );
  const given = ["--limit", "global", "--value", "500", "--refill-per-minute", "60", "--reason", "fair"];
  expect(await admin("override", "--account", accountId, ...given, "--until", "90m")).toMatchObject({
    status: 0,
    stderr: "",
  });
  const listed = async () => {
    const lines = (await admin("list-accounts")).stdout.trim().split("\n");
    return lines.map((line) => JSON.parse(line)).find(({ id }) => id === accountId);
  };
  const override = { limit: "global", value: 500, refillPerMinute: 60, reason: "fair", expiresAt: expect.any(String) };
  expect(await listed()).toMatchObject({ name: "Audited", tier: "personal", overrides: [override] });
  const end = ["end-override", "--account", "Audited", "--limit", "global"];
  expect((await admin(...end)).status).toBe(0);
  expect((await admin(...end)).stderr).toMatch(/has no override of global/);
  expect((await listed()).overrides).toEqual([]);
  const written = (await entries(accountId)).map(({ action, data }) => [action, data]);
  expect(written).toEqual([
    ["api_key.create", expect.objectContaining({ name: "admin" })],
    ["account.set_tier", { before: "free", tier: "personal" }],
    ["account.override", expect.objectContaining({ limit: "global", value: 500 })],
    ["account.end_override", { limit: "global" }],
  ]);
});

test("disables and enables an account, and writes both into its audit log", async () => {
  const key = (await admin("create-key", "--account", "Halted")).stdout.trim();
  const { accountId } = await ownerOf(key);
  const lookUp = () => bearers.lookUpFresh(bearers.read(`Bearer ${key}`));
  const disable = ["disable-account", "--account", "Halted", "--reason", "unpaid"];
  expect((await admin(...disable)).stdout).toBe(`Halted (${accountId}) is disabled.\n`);
  await expect(lookUp()).rejects.toThrow("the key or token was revoked");
  expect((await admin(...disable)).stderr).toMatch(/is disabled already/);
  expect((await admin("list-accounts")).stdout).toMatch(/"name":"Halted".*"disabled_at":"20/);
  expect((await admin("enable-account", "--account", accountId)).status).toBe(0);
  expect((await lookUp()).accountId).toBe(accountId);
  expect((await entries(accountId)).slice(1)).toEqual([
    { action: "account.disable", data: { reason: "unpaid" }, actor_kind: "operator" },
    { action: "account.enable", data: {}, actor_kind: "operator" },
  ]);
});

test("publishes a revision of the terms once, and writes it into the audit log of every account", async () => {
  const { accountId } = await ownerOf((await admin("create-key", "--account", "Bound")).stdout.trim());
  const publish = (revision: string, effective: string) =>
    admin("publish-terms", "--revision", revision, "--url", "https://example.com/terms", "--effective", effective);
  expect((await publish("soon", "13d")).stderr).toMatch(/--effective: .*14 days/);
  expect((await publish("2030", "2130-01-01T00:00:00Z")).stdout).toMatch(
    /comes into force at 2130-01-01T00:00:00.000Z/,
  );
  for (const again of [await publish("2030", "200d"), await publish("2031", "2130-01-01T00:00:00Z")])
    expect(again.stderr).toMatch(/there is a revision .* already, or one/);
  expect((await entries(accountId)).slice(1)).toEqual([
    {
      action: "legal.publish",
      data: { url: "https://example.com/terms", effective_at: "2130-01-01T00:00:00.000Z" },
      actor_kind: "operator",
    },
  ]);
});

test("migrate applies missing migrations, and accepts a database of a later release", async () => {
  await sql`create database to_migrate`.execute(database.db.sql);
  const url = databaseUrl(database.socketDirectory, "to_migrate");
  onTestFinished(async () => void (await sql`drop database to_migrate with (force)`.execute(database.db.sql)));
  const env = { DATABASE_URL: url, MIGRATE: "off" };
  expect(await runAdminHere(env, "list-accounts")).toMatchObject({ status: 1 });
  const migrate = () => runAdminHere(env, "migrate");
  const applied = {
    status: 0,
    stderr: "",
    stdout: expect.stringContaining(`migrations of release ${releaseVersion}: 001-`),
  };
  expect(await migrate()).toEqual(applied);
  expect(await runAdminHere(env, "list-accounts")).toMatchObject({ status: 0, stderr: "" });
  expect(await migrate()).toMatchObject({ status: 0, stdout: expect.stringContaining("nothing to do") });
  const db = openDatabase({ url }, silentLog, 1);
  onTestFinished(() => db.close());
  await db.migrate({ ...migrations, "999-later": [] });
  expect(await migrate()).toMatchObject({ status: 0, stdout: expect.stringMatching(/later release .*\(999-later\)/) });
});

test("works next to a running service of embedded mode, and reports when there is none", async () => {
  await using running = await startSessionsApp({}, { ownServer: true });
  const env = { DATA_DIR: running.app.config.dataDir };
  const made = await runAdminHere(env, "create-key", "--account", "Beside");
  expect([made.status, made.stderr]).toEqual([0, ""]);
  const owner = await running.app.bearers.lookUp(running.app.bearers.read(`Bearer ${made.stdout.trim()}`));
  expect(owner.tier).toBe("free");
  await running.app.stop();
  const refused = await runAdminHere(env, "list-accounts");
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(/no service runs on DATA_DIR/)]);
  const nowhere = await runAdminHere({ DATA_DIR: "/nowhere" }, "list-accounts");
  expect(nowhere.stderr).toMatch(/has no database in it/);
});
