import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { migrations } from "../../src/app/migrations.ts";
import { createLog } from "../../src/platform/log.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { databaseUrl, forgetful, makeDataDirectory, templateName } from "./database.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Socket directory of the PostgreSQL that the files of a run share. */
    readonly postgres?: string;
  }
}

/** Starts the PostgreSQL of a run with a migrated template database. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const directory = await makeDataDirectory();
  const log = createLog("warn");
  const postgres = createEmbeddedPostgres(directory, log, { ...forgetful, max_connections: "200" });
  await postgres.start();
  const socketDirectory = join(directory, "postgres", "run");
  const server = openDatabase({ url: databaseUrl(socketDirectory) }, log, 1);
  await server.named({ name: "template", text: `create database ${templateName}` }, []);
  await server.close();
  // A template must have no connections, so the pool that migrates is closed first.
  const template = openDatabase({ url: databaseUrl(socketDirectory, templateName) }, log, 1);
  await template.migrate(migrations);
  await template.close();
  project.provide("postgres", socketDirectory);
  return async () => {
    await postgres.stop();
    await rm(directory, { recursive: true, force: true });
  };
}
