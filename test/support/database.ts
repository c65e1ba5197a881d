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

/** Log without output, whose entries are only scanned for secrets. */
export const silentLog = createLog("debug", { write: recordLog });

/** A cluster has a thousand files, which are created ten times faster in memory than on a disk. */
const memory = { directory: "/dev/shm", bytes: 4 * 2 ** 30 };

/** Directory for data directories. Benchmarks use the disk. */
async function dataRoot(): Promise<string> {
  if (process.env.VITEST === undefined) return tmpdir();
  const { bavail = 0, bsize = 0 } = await statfs(memory.directory).catch(() => ({}) as Partial<StatsFs>);
  return bavail * bsize >= memory.bytes ? memory.directory : tmpdir();
}

/** Creates a directory that the user of the server can also enter. */
export async function makeDataDirectory(): Promise<string> {
  const directory = await mkdtemp(join(await dataRoot(), `pilothouse-test-${process.pid}-`));
  await chmod(directory, 0o711);
  return directory;
}

/** Creates a data directory with a copy of the run's cluster, if any. */
export async function makeClusterDirectory(): Promise<string> {
  const directory = await makeDataDirectory();
  const cluster = process.env.VITEST === undefined ? undefined : inject("cluster");
  // Keeps the owners, because PostgreSQL does not run as root.
  if (cluster !== undefined) await promisify(execFile)("cp", ["-a", join(cluster, "postgres"), directory]);
  return directory;
}

/** Settings of a server that need not survive a machine crash. They are safe if only the server is killed. */
export const forgetful = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/** Returns the URL of a database behind a unix socket in a directory. */
export const databaseUrl = (socketDirectory: string, name = "postgres"): string =>
  `postgres://localhost/${name}?user=postgres&host=${encodeURIComponent(socketDirectory)}`;

/** Migrated database that is copied for others. */
export const templateName = "pilothouse_template";

/** Empty database with the product's tables, which is dropped on disposal. */
export interface EmptyDatabase extends AsyncDisposable {
  readonly url: string;
  readonly name: string;
  /** Directory of the server's socket. */
  readonly socketDirectory: string;
}

/** Creates a database on the server of the run. Returns undefined in benchmarks and in tiers without a server. */
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

/** Runs a statement on a separate connection. */
async function runAlone(socketDirectory: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl(socketDirectory) });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Database with the product's tables and a connection pool. */
export interface TestDatabase extends EmptyDatabase {
  readonly db: Database;
}

/** Creates a database on the server of the run, or on a new server in tiers without one. */
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

/** Database of a server that the test may stop. */
export interface OwnDatabase extends TestDatabase {
  readonly directory: string;
  readonly postgres: EmbeddedPostgres;
}

/** Starts a server in a new directory. Both are removed on disposal. */
export async function startOwnDatabase(): Promise<OwnDatabase> {
  const directory = await makeClusterDirectory();
  const postgres = createEmbeddedPostgres(directory, silentLog);
  await postgres.start();
  const socketDirectory = join(directory, "postgres", "run");
  const url = databaseUrl(socketDirectory);
  const db = openDatabase({ url }, silentLog);
  await db.migrate(migrations);
  return {
    url,
    name: "postgres",
    socketDirectory,
    directory,
    postgres,
    db,
    async [Symbol.asyncDispose]() {
      await close(db);
      await postgres.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Closes a pool in which a failed test may have left an open transaction. */
async function close(db: Database): Promise<void> {
  await Promise.race([db.close(), sleep(2_000)]);
}
