import { spawnSync } from "node:child_process";
import { hostname } from "node:os";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { releaseVersion } from "../../src/platform/release.ts";
import { startTestDatabase } from "../support/database.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";

test("a gateway that refuses its database logs its start and end, and exits with one sentence", async () => {
  await using database = await startTestDatabase();
  await sql`update kysely_migration set name = 'replaced-' || name`.execute(database.db.sql);
  const env = {
    ...process.env,
    DATABASE_URL: database.url,
    REDIS_URL: "redis://127.0.0.1:1",
    SECRETS_KEYS: testSecretsKeys,
    SIGNUP: "closed",
    LOG_LEVEL: "info",
  };
  const options = { env, encoding: "utf8", timeout: 50_000, killSignal: "SIGKILL" } as const;
  const { status, stderr } = spawnSync(process.execPath, ["gateway/main.ts"], options);
  const lines = stderr.trimEnd().split("\n");
  const sentence = lines.pop();
  expect({ status, sentence }).toEqual({
    status: 1,
    sentence: expect.stringMatching(/^pilothouse: the database was created before release 0\.2\.0 /),
  });
  const identity = { role: "gateway", release: releaseVersion, host: hostname() };
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    ["the process starts", "the process stops", "the process has stopped"].map((msg) =>
      expect.objectContaining({ ...identity, msg }),
    ),
  );
}, 60_000);
