import { rm } from "node:fs/promises";
import type { TestProject } from "vitest/node";
import { migrations } from "../../src/app/migrations.ts";
import { createLog } from "../../src/platform/log.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { makeDataDirectory } from "./database.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Data directory with a migrated cluster that was shut down cleanly. */
    readonly cluster?: string;
  }
}

/** Creates the cluster that services of a run copy, which saves a second of CPU time for each start. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const directory = await makeDataDirectory();
  const log = createLog("warn");
  const postgres = createEmbeddedPostgres(directory, log);
  await postgres.start();
  const db = openDatabase(postgres.target, log, 1);
  await db.migrate(migrations);
  await db.close();
  await postgres.stop();
  project.provide("cluster", directory);
  return () => rm(directory, { recursive: true, force: true });
}
