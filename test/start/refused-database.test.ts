import { spawnSync } from "node:child_process";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { startTestDatabase } from "../support/database.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";

test("a gateway that refuses its database exits with one sentence", async () => {
  await using database = await startTestDatabase();
  await sql`update kysely_migration set name = 'replaced-' || name`.execute(database.db.sql);
  const env = {
    ...process.env,
    DATABASE_URL: database.url,
    REDIS_URL: "redis://127.0.0.1:1",
    SECRETS_KEYS: testSecretsKeys,
    SIGNUP: "closed",
    LOG_LEVEL: "error",
  };
  const options = { env, encoding: "utf8", timeout: 50_000, killSignal: "SIGKILL" } as const;
  const { status, stderr } = spawnSync(process.execPath, ["gateway/main.ts"], options);
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/^pilothouse: the database was created before release 0\.2\.0 .*\n$/),
  });
}, 60_000);
