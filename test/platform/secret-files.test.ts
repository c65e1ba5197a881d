import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { readConfig } from "../../src/platform/config.ts";
import { readWorkerConfig } from "../../workers/base/config.ts";
import { runAdminHere } from "../support/admin.ts";
import { makeDataDirectory } from "../support/database.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

test("secrets are read from files, without the line break at their end", async () => {
  const directory = await makeDataDirectory();
  const write = async (name: string, text: string) => {
    await writeFile(`${directory}/${name}`, text);
    return `${directory}/${name}`;
  };
  const files = {
    DATABASE_URL_FILE: await write("database", "postgres://user:secret@db/name\n"),
    SECRETS_KEYS_FILE: await write("keys", `one:${Buffer.alloc(32, 1).toString("base64")}\n`),
    WORKER_TOKEN_FILE: await write("token", "0123456789abcdef\n"),
  };
  const env = { ...files, SIGNUP: "closed" };
  const { databaseUrl, secretsKeys, workerToken, embedded } = readConfig(env);
  expect([databaseUrl, secretsKeys.length, workerToken, embedded]).toEqual([
    "postgres://user:secret@db/name",
    1,
    "0123456789abcdef",
    false,
  ]);
  const worker = { WORKER_LISTEN: "127.0.0.1:1", CONTROL: "127.0.0.1:2" };
  expect(readWorkerConfig({ ...worker, WORKER_TOKEN_FILE: files.WORKER_TOKEN_FILE }).token).toBe("0123456789abcdef");
  expect(() => readConfig({ ...env, DATABASE_URL: "postgres://other" })).toThrow(
    "DATABASE_URL_FILE and DATABASE_URL are both set: set one of them",
  );
  expect(() => readConfig({ ...env, DATABASE_URL_FILE: `${directory}/none` })).toThrow(
    /^DATABASE_URL_FILE accepts the path of a readable file, not /,
  );
  await using running = await startSessionsApp();
  const ofAdmin = { DATABASE_URL_FILE: await write("admin", running.databaseUrl) };
  expect(await runAdminHere(ofAdmin, "list-accounts")).toMatchObject({ status: 0, stderr: "" });
});
