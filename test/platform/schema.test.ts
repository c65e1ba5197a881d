import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { describeSchema } from "../../tools/describe-schema.ts";
import { startTestDatabase } from "../support/database.ts";

test("docs/schema.sql is the schema after all migrations (`npm run accept-contract` writes it)", async () => {
  await using database = await startTestDatabase();
  expect(await describeSchema(database.db)).toBe(await readFile("docs/schema.sql", "utf8"));
});
