import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { StatsFs } from "node:fs";
import { chmod, mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { inject } from "vitest";
import { migrations } from "../../src/app/migrations.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { createLog } from "../../src/platform/log.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { recordLog } from "./logs.ts";

/** A log that shows nothing: what would be in it is looked through for secrets alone. */
export const silentLog = createLog("debug", { write: recordLog });

/** A cluster is a thousand files, which a disk takes ten times as long to make: tests have theirs in memory. */
const memory = { directory: "/dev/shm", bytes: 4 * 2 ** 30 };

/** Where data directories are made; benches measure on the disk. */
async function dataRoot(): Promise<string> {
  if (process.env.VITEST === undefined) return tmpdir();
  const { bavail = 0, bsize = 0 } = await statfs(memory.directory).catch(() => ({}) as Partial<StatsFs>);
  return bavail * bsize >= memory.bytes ? memory.directory : tmpdir();
}

/** Makes a directory that the server's own user can pass, too. */
export async function makeDataDirectory(): Promise<string> {
  const directory = await mkdtemp(join(await dataRoot(), "pilothouse-test-"));
  await chmod(directory, 0o711);
  return directory;
}

/** Makes a data directory in which PostgreSQL has its cluster already, where the run has one to copy. */
export async function makeClusterDirectory(): Promise<string> {
  const directory = await makeDataDirectory();
  const cluster = process.env.VITEST === undefined ? undefined : inject("cluster");
  // With its owners: PostgreSQL runs as no root.
  if (cluster !== undefined) await promisify(execFile)("cp", ["-a", join(cluster, "postgres"), directory]);
  return directory;
}

/** Settings of a server that need not survive the machine's crash; a killed server loses nothing by them. */
export const forgetful = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/** Address of a database behind the unix socket in a directory. */
export const databaseUrl = (socketDirectory: string, name = "postgres"): string =>
  `postgres://localhost/${name}?user=postgres&host=${encodeURIComponent(socketDirectory)}`;

/** The migrated database that others are copies of. */
export const templateName = "pilothouse_template";

/** An empty database with our tables, which is removed when it is disposed of. */
export interface EmptyDatabase extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
  /** Directory of the server's socket. */
  readonly socketDirectory: string;
}

/** Creates a database on the server of the run; undefined in tiers that have none, and in benches. */
export async function createSharedDatabase(): Promise<EmptyDatabase | undefined> {
  const socketDirectory = process.env.VITEST === undefined ? undefined : inject("postgres");
  if (socketDirectory === undefined) return undefined;
  const name = `test_${randomBytes(8).toString("hex")}`;
  await runAlone(socketDirectory, `create database ${name} template ${templateName} strategy file_copy`);
  return {
    url: databaseUrl(socketDirectory, name),
    name,
    socketDirectory,
    [Symbol.asyncDispose]: () => runAlone(socketDirectory, `drop database ${name} with (force)`),
  };
}

/** Runs a statement on a connection of its own. */
async function runAlone(socketDirectory: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl(socketDirectory) });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A database with our tables and a pool of connections to it. */
export interface TestDatabase extends EmptyDatabase {
  readonly db: Database;
}

/** Creates a database on the server of the run, or on one of its own in tiers that have none. */
export async function startTestDatabase(): Promise<TestDatabase> {
  const shared = await createSharedDatabase();
  if (!shared) return startOwnDatabase();
  const db = openDatabase({ url: shared.url }, silentLog);
  return {
    ...shared,
    db,
    async [Symbol.asyncDispose]() {
      await close(db);
      await shared[Symbol.asyncDispose]();
    },
  };
}

/** A database of a server that the test may stop. */
export interface OwnDatabase extends TestDatabase {
  readonly directory: string;
  readonly postgres: EmbeddedPostgres;
}

/** Starts a server in a directory of its own, and removes both when it is disposed of. */
export async function startOwnDatabase(): Promise<OwnDatabase> {
  const directory = await makeClusterDirectory();
  const postgres = createEmbeddedPostgres(directory, silentLog);
  await postgres.start();
  const socketDirectory = join(directory, "postgres", "run");
  const url = databaseUrl(socketDirectory);
  const db = openDatabase({ url }, silentLog);
  await db.migrate(migrations);
  return {
    ...{ url, name: "postgres", socketDirectory, directory, postgres, db },
    async [Symbol.asyncDispose]() {
      await close(db);
      await postgres.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Closes a pool in which a test that failed may have left a transaction open. */
async function close(db: Database): Promise<void> {
  await Promise.race([db.close(), sleep(2_000)]);
}
