import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DebianPostgres, postgresUser, startDebianPostgres } from "../support/debian-postgres.ts";
import type { DeployedGateway, Deployment } from "../support/deployment.ts";
import { type Answer, restClient } from "../support/rest.ts";
import { acquire, askForAll, type Belongings, cookiesIn, Outside, state, succeed, until } from "./backup-scene.ts";

const run = promisify(execFile);

const newKey = (id: string): string => `${id}:${randomBytes(32).toString("base64")}`;

const keys = newKey("one");

/** Seconds after which the server archives its log, also if a segment is not full. */
const archiveTimeout = 2;

/** Milliseconds of writes after the dump. */
const writesFor = 8_000;

let outside: Outside;
/** Directory that the loss of the machine does not affect. */
let backups: string;
let had: Belongings;
/** Key that was revoked after the dump, and a profile that was created after it. */
let revoked: string;
let late: string;
/** Times of acknowledged writes and of the loss. */
const writes: number[] = [];
let lostAt: number;

const inBackups = (name: string): string => join(backups, name);

const report = (line: string): void => void process.stdout.write(`${line}\n`);

const secondsBetween = (from: number, to: number): string => `${((to - from) / 1_000).toFixed(1)} s`;

beforeAll(async () => {
  outside = await Outside.start();
  backups = await mkdtemp(join(tmpdir(), "pilothouse-backups-"));
  await chmod(backups, 0o777);
  await mkdir(inBackups("log"));
  await chmod(inBackups("log"), 0o777);
  const archive = `archive_command=cp %p ${inBackups("log")}/%f`;
  const settings = ["archive_mode=on", archive, `archive_timeout=${archiveTimeout}`];
  await using database = await startDebianPostgres({ settings });
  await using deployment = await outside.deploy(database.url, keys);
  await database.client("pg_basebackup", "--pgdata", inBackups("base"), "--wal-method=none", "--checkpoint=fast");
  had = await acquire(outside, deployment);
  const { rest } = deployment.gateway(0);
  const write = async (): Promise<void> => {
    const labels = { write: String(writes.length) };
    await succeed(rest(`/v1/profiles/${had.profile}`, { labels }, { method: "PATCH" }));
    writes.push(performance.now());
  };
  const { key, id } = await succeed(rest("/v1/api-keys", { name: "leaked" }));
  revoked = key;
  await write();
  const begun = performance.now();
  await database.client("pg_dump", "--format=custom", "--file", inBackups("dump"), "postgres");
  report(`dump: ${(await stat(inBackups("dump"))).size} bytes in ${secondsBetween(begun, performance.now())}`);
  await succeed(rest(`/v1/api-keys/${id}`, undefined, { method: "DELETE" }));
  late = (await succeed(rest("/v1/profiles", { name: "late" }))).id;
  for (const end = performance.now() + writesFor; performance.now() < end; ) await write();
  await deployment.kill();
  lostAt = performance.now();
}, 600_000);
afterAll(async () => {
  await outside?.[Symbol.asyncDispose]();
  await rm(backups, { recursive: true, force: true });
});

async function restoreDump(): Promise<DebianPostgres> {
  const database = await startDebianPostgres();
  const options = ["--no-owner", "--exit-on-error", "--single-transaction", "--dbname", "postgres"];
  await database.client("pg_restore", ...options, inBackups("dump"));
  return database;
}

/** Restores the base backup and replays the archived log. */
function restoreBase(): Promise<DebianPostgres> {
  return startDebianPostgres({
    settings: [`restore_command=cp ${inBackups("log")}/%f %p`],
    async restore(data) {
      await run("cp", ["-a", inBackups("base"), data]);
      await run("touch", [join(data, "recovery.signal")], postgresUser);
    },
  });
}

const slugOf = ({ body }: Answer): string => body.type?.split("/").at(-1);

/** Expects that the account can use everything as before the loss. */
async function expectAll(deployment: Deployment): Promise<void> {
  const gateway = deployment.gateway(0);
  const found = await askForAll(gateway, had);
  const { id: session } = found.launch.body;
  expect(found).toMatchObject({
    account: { status: 200 },
    recipe: { status: 200, body: had.recipe },
    repeated: { status: 201, body: had.recipe },
    login: { status: 200, body: { mfa_enrolled: true } },
    // The browsers were lost with the machine.
    session: { status: 410, body: { ended_reason: "worker_lost" } },
    turn: { status: 200, body: { status: "failed", reason: "worker_lost" } },
    stepUp: { status: 200 },
    logs: { status: 200, body: { lost: false, data: [{ type: "navigation" }] } },
    state: { status: 200, body: state },
    launch: { status: 201, body: { status: "live" } },
    llmKey: { status: 200, body: { ok: true } },
  });
  expect(await cookiesIn(outside, gateway.rest, session)).toBe("login=kept");
  outside.receiver.answer = () => 200;
  const isDelivered = () =>
    outside.receiver.at("/hooks").filter(({ eventId }) => eventId === had.undelivered).length > 1;
  await until(async () => isDelivered());
}

/** Times of a restore: its begin, and when the database was restored. */
interface Restored {
  readonly begun: number;
  readonly restored: number;
}

/** Prints how long the service was down and which writes were lost. Returns the number of the last write. */
async function measure(backup: string, { begun, restored }: Restored, { rest }: DeployedGateway): Promise<number> {
  const ready = performance.now();
  const { labels } = await succeed(rest(`/v1/profiles/${had.profile}`));
  const last = Number(labels.write);
  const lost = writes.length - 1 - last;
  report(`${backup}: RPO ${secondsBetween(writes[last] ?? 0, lostAt)} (${lost} of ${writes.length} writes lost)`);
  report(`${backup}: RTO ${secondsBetween(begun, ready)} (${secondsBetween(begun, restored)} for the database)`);
  return last;
}

test("a dump restores everything up to the dump", { timeout: 300_000 }, async () => {
  outside.receiver.answer = () => 503;
  const begun = performance.now();
  await using database = await restoreDump();
  const restored = performance.now();
  await using deployment = await outside.deploy(database.url, keys);
  const gateway = deployment.gateway(0);
  expect(await measure("dump", { begun, restored }, gateway)).toBe(0);
  expect(slugOf(await gateway.rest(`/v1/profiles/${late}`))).toBe("not-found");
  const leaked = restClient({ url: gateway.url, key: revoked });
  expect((await leaked("/v1/account/me")).status).toBe(200);
  await expectAll(deployment);
});

test("a base backup and the archived log restore everything up to the last archived segment", {
  timeout: 300_000,
}, async () => {
  outside.receiver.answer = () => 503;
  const begun = performance.now();
  await using database = await restoreBase();
  const restored = performance.now();
  await using deployment = await outside.deploy(database.url, keys);
  const gateway = deployment.gateway(0);
  expect(await measure("base backup", { begun, restored }, gateway)).toBeGreaterThan(0);
  expect(await gateway.rest(`/v1/profiles/${late}`)).toMatchObject({ status: 200 });
  const leaked = restClient({ url: gateway.url, key: revoked });
  expect(slugOf(await leaked("/v1/account/me"))).toBe("revoked-key");
  await expectAll(deployment);
});

test("without the lost key, encrypted secrets fail with the reason, and everything else works", {
  timeout: 300_000,
}, async () => {
  outside.receiver.answer = () => 200;
  await using database = await restoreDump();
  await using deployment = await outside.deploy(database.url, newKey("two"));
  const gateway = deployment.gateway(0);
  const { rest } = gateway;
  const detail = expect.stringContaining("the operator of the service must restore its SECRETS_KEYS");
  const unreadable = { status: 500, body: { detail } };
  expect(await askForAll(gateway, had)).toMatchObject({
    account: { status: 200 },
    recipe: { status: 200, body: had.recipe },
    repeated: unreadable,
    login: { status: 200 },
    session: { status: 410, body: { ended_reason: "worker_lost" } },
    turn: { status: 200, body: { status: "failed", reason: "worker_lost" } },
    stepUp: unreadable,
    logs: unreadable,
    state: unreadable,
    launch: unreadable,
    llmKey: { status: 200, body: { ok: false, reason: "wrong_key", error: expect.stringContaining("store it again") } },
  });
  for (const { output } of [gateway, deployment.control(0)])
    expect(output).toMatch(/"key_ids":\["one"\].*"msg":"SECRETS_KEYS lacks keys/);
  const uses = (await deployment.admin("secrets-keys")).split("\n").map((line) => JSON.parse(line));
  expect(uses).toContainEqual({ key: "one", table: "webhook_endpoints", column: "secret", secrets: 1 });

  const delivery = async () => (await rest(`/v1/webhooks/${had.webhook}/deliveries`)).body.data[0];
  await until(async () => (await delivery()).attempts.at(-1).error === "secret_unreadable");
  await succeed(rest(`/v1/webhooks/${had.webhook}/rotate-secret`, {}));
  await succeed(rest(`/v1/webhook-deliveries/${(await delivery()).id}/replay`, {}));
  await until(async () => (await delivery()).status === "delivered");
  const llm = { provider: "anthropic", api_key: "good-key-x7Qa" };
  await succeed(rest("/v1/account/me/byok-llm-key", llm, { method: "PUT" }));
  expect(await rest("/v1/account/me/byok-llm-key/test", {})).toMatchObject({ body: { ok: true } });
  const headers = { "content-type": "application/json" };
  const put = { method: "PUT", body: JSON.stringify(state), headers };
  await succeed(rest(`/v1/profiles/${had.profile}/storage-state`, undefined, put));
  expect(await rest("/v1/sessions", { profile_id: had.profile })).toMatchObject({ status: 201 });
  expect(await deployment.admin("secrets-keys", "--forget", "one")).toContain("no longer expected");
});

test("a new key with the id of the lost one is refused", { timeout: 120_000 }, async () => {
  await using database = await restoreDump();
  const started = outside.deploy(database.url, newKey("one"));
  await expect(started).rejects.toThrow(/the key one of SECRETS_KEYS is not the one .* give the new key another id/);
});
