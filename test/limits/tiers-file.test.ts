import { spawnSync } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { readTiersFile } from "../../src/limits/tiers-file.ts";
import { makeDataDirectory } from "../support/database.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

async function writeTiers(text: string): Promise<string> {
  const directory = await makeDataDirectory();
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, "tiers.json");
  await writeFile(path, text);
  return path;
}

test("TIERS_FILE replaces the limits that it names for new sessions", async () => {
  const limits = { free: { concurrent_sessions: 2, longest_session_seconds: 1_200 } };
  const running = await startSessionsApp({ TIERS_FILE: await writeTiers(JSON.stringify(limits)) });
  onTestFinished(() => running[Symbol.asyncDispose]());
  await running.worker();
  const call = await running.caller("free");
  const begin = (timeoutSeconds: number) =>
    running.sessions.create(call(), create(CreateSessionRequestSchema, { timeoutSeconds }));
  await expect(begin(1_201)).rejects.toMatchObject({ slug: "validation-failed" });
  for (const _ of [1, 2]) await begin(1_200);
  await expect(begin(1_200)).rejects.toMatchObject({ slug: "concurrency-limit" });
  const other = await running.caller("personal");
  await expect(
    running.sessions.create(other(), create(CreateSessionRequestSchema, { timeoutSeconds: 3_601 })),
  ).rejects.toMatchObject({ slug: "validation-failed" });
});

test("TIERS_FILE changes buckets and minutes, and keeps other limits", async () => {
  const size = { capacity: 240, refill_per_minute: 120 };
  const path = await writeTiers(JSON.stringify({ personal: { session_minutes: null, global: size } }));
  const built = tiers.get("personal");
  const buckets = { ...built.buckets, global: { capacity: 240, refillPerSecond: 2 } };
  const personal = { ...built, monthlySessionMinutes: Number.POSITIVE_INFINITY, buckets };
  expect(readTiersFile(path)).toEqual(new Map([["personal", personal]]));
});

const refused: [text: string, sentence: RegExp][] = [
  ["{", /^TIERS_FILE accepts the path of a JSON file: .*JSON/],
  ["[]", /^TIERS_FILE accepts an object as the file, not `\[\]`$/],
  ['{"gold":{}}', /^TIERS_FILE accepts the tiers free, personal.* as the file, not `"gold"`$/],
  ['{"free":3}', /^TIERS_FILE accepts an object as free, not `3`$/],
  ['{"free":{"minutes":3}}', /^TIERS_FILE accepts the limits global, .*session_minutes.* as free, not `"minutes"`$/],
  ['{"free":{"profiles":-1}}', /a whole number from 0 to 4294967295 as free.profiles, not `-1`$/],
  ['{"free":{"profiles":null}}', /as free.profiles, not `null`$/],
  ['{"free":{"longest_session_seconds":86401}}', /from 1 to 86400 as free.longest_session_seconds/],
  ['{"free":{"global":5}}', /an object as free.global, not `5`$/],
  ['{"free":{"global":{"capacity":5}}}', /from 1 to 4294967295 as free.global.refill_per_minute, not `nothing`$/],
  ['{"free":{"global":{"size":5}}}', /accepts `capacity` and `refill_per_minute` as free.global, not `"size"`$/],
];

test.each(refused)("refuses TIERS_FILE %s in one sentence", async (text, sentence) => {
  const path = await writeTiers(text);
  expect(() => readTiersFile(path)).toThrow(sentence);
});

test("a gateway with an invalid TIERS_FILE exits with one sentence", async () => {
  const env = {
    DATABASE_URL: "postgres://127.0.0.1:1/x",
    REDIS_URL: "redis://127.0.0.1:1",
    SECRETS_KEYS: `one:${"A".repeat(43)}=`,
    SIGNUP: "closed",
    TIERS_FILE: await writeTiers('{"gold":{}}'),
  };
  const options = { env: { ...process.env, ...env }, encoding: "utf8", timeout: 60_000 } as const;
  const { status, stderr } = spawnSync(process.execPath, ["gateway/main.ts"], options);
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/^pilothouse: TIERS_FILE accepts the tiers free, .* as the file, not `"gold"`\n$/),
  });
}, 60_000);

test("refuses a TIERS_FILE that does not exist", () => {
  expect(() => readTiersFile("/nowhere/tiers.json")).toThrow(/^TIERS_FILE accepts the path of a JSON file: ENOENT/);
});
