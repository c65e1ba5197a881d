import { sql } from "kysely";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectionOptions } from "../../src/platform/database.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await startTestDatabase();
});

afterAll(() => database[Symbol.asyncDispose]());

test("a connection that breaks between two statements fails its transaction, and nothing else", async () => {
  const { db, postgres } = database;
  const killer = new pg.Client(connectionOptions(postgres.target));
  await killer.connect();
  const broken = db.transaction(async (tx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx.sql);
    await killer.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
    await expect
      .poll(async () => {
        const { rowCount } = await killer.query("select 1 from pg_stat_activity where pid = $1", [rows[0]?.pid]);
        return rowCount;
      })
      .toBe(0);
    await sql`select 1`.execute(tx.sql);
  });
  await expect(broken).rejects.toMatchObject({ slug: "internal", retryAfter: 1 });
  const { rows } = await sql<{ one: number }>`select 1 as one`.execute(db.sql);
  expect(rows).toEqual([{ one: 1 }]);
  await killer.end();
});
