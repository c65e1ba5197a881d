import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { checkSecretsKeys } from "../../src/platform/secrets/known-keys.ts";
import type { SecretsKey } from "../../src/platform/secrets/secrets-keys.ts";
import { createSealer } from "../../src/platform/secrets/secrets-sealer.ts";
import { sealedColumns } from "../../tools/admin/secrets-keys.ts";
import { runAdminHere } from "../support/admin.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => void (await database.db.sql.deleteFrom("secrets_keys").execute()));

const key = (id: string): SecretsKey => ({ id, secret: randomBytes(32) });

/** Checks keys as a gateway does at its start, and returns its log. */
async function start(...keys: readonly SecretsKey[]): Promise<string> {
  let printed = "";
  const write = (line: string): void => {
    printed += line;
  };
  const log = createLog("warn", { write });
  await checkSecretsKeys({ db: database.db, log }, createSealer({ keys, file: undefined }));
  return printed;
}

const admin = (...args: readonly string[]) => runAdminHere({ DATABASE_URL: database.url }, ...args);

test("logs keys that are missing at the start, until the operator accepts it", async () => {
  const [old, next] = [key("old"), key("next")];
  expect(await start(old)).toBe("");
  expect(await start(next, old)).toBe("");
  expect(await start(next)).toMatch(/"key_ids":\["old"\].*"msg":"SECRETS_KEYS lacks keys/);
  expect(await admin("secrets-keys", "--forget", "old")).toMatchObject({ status: 0 });
  expect(await start(next)).toBe("");
  expect(await admin("secrets-keys", "--forget", "old")).toMatchObject({
    status: 1,
    stderr: /--forget accepts the id/,
  });
});

test("refuses another key with the id of an earlier one", async () => {
  await start(key("one"));
  await expect(start(key("one"))).rejects.toMatchObject({
    name: "StartRefused",
    message: /^the key one of SECRETS_KEYS/,
  });
});

test("counts stored secrets by the key that encrypted them", async () => {
  const context = { accountId: "eml_1", purpose: "mail" };
  for (const [index, id] of ["one", "two", "two"].entries()) {
    const content = createSealer({ keys: [key(id)], file: undefined }).seal(Buffer.from("{}"), context);
    await database.db.sql
      .insertInto("mails")
      .values({ id: `eml_${index}`, user_id: null, kind: "security", content })
      .execute();
  }
  const { stdout } = await admin("secrets-keys");
  const uses = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(uses).toEqual([
    { key: "one", table: "mails", column: "content", secrets: 1 },
    { key: "two", table: "mails", column: "content", secrets: 2 },
  ]);
});

/** Columns whose bytes are hashes, are encrypted by a data key, or are no secrets. */
const unsealed =
  /_hash$|^(recovery_codes|mail_tokens)\.hash$|^(profile_chunks\.data|recipes\.contents|secrets_keys\.proof|login_tokens\.seed|users\.pending_invite)$/;

test("every column of bytes is counted or known to have no sealed secrets", async () => {
  const columns: string[] = [];
  let table = "";
  for (const line of (await readFile("docs/schema.sql", "utf8")).split("\n")) {
    table = /^CREATE TABLE (\w+)/.exec(line)?.[1] ?? table;
    const column = /^ {2}(\w+) bytea/.exec(line)?.[1];
    if (column !== undefined) columns.push(`${table}.${column}`);
  }
  const counted = sealedColumns.map((names) => names.join("."));
  expect(columns.filter((name) => !unsealed.test(name)).sort()).toEqual([...counted].sort());
});
