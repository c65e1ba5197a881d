import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { moveTime } from "../support/move-time.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database?.[Symbol.asyncDispose]());

const read = { name: "test-app-now", text: "select extract(epoch from app_now() - clock_timestamp()) as ahead" };

async function secondsAhead(): Promise<number> {
  const [row] = await database.db.named<{ ahead: string }>(read, []);
  return Number(row?.ahead);
}

test("app_now() is inlined as clock_timestamp()", async () => {
  const { rows } = await sql<Record<string, string>>`explain (verbose) select app_now()`.execute(database.db.sql);
  expect(rows.map((row) => row["QUERY PLAN"]?.trim())).toContain("Output: clock_timestamp()");
});

test("no column default uses another clock than app_now()", async () => {
  const { rows } = await sql<{ name: string }>`
    select table_name || '.' || column_name as name from information_schema.columns
    where table_schema = current_schema() and column_default ~ '(^|[^_])(now|timestamp)\\(\\)'`.execute(
    database.db.sql,
  );
  // Kysely's own tables do not use app_now().
  expect(rows).toEqual([]);
});

test("a shifted clock applies to statements that are already prepared", async () => {
  expect(Math.abs(await secondsAhead())).toBeLessThan(1);
  await moveTime(database.db, 30 * 86_400_000);
  expect(await secondsAhead()).toBeGreaterThan(30 * 86_400 - 1);
});
