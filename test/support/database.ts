import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrations } from "../../src/features.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { createLog } from "../../src/platform/log.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { recordLog } from "./logs.ts";

/** A log that shows nothing: what would be in it is looked through for secrets alone. */
export const silentLog = createLog("debug", { write: recordLog });

/** Makes a directory that the server's own user can pass, too. */
export async function makeDataDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "pilothouse-test-"));
  await chmod(directory, 0o711);
  return directory;
}

/** A migrated database of a server of its own. */
export interface TestDatabase extends AsyncDisposable {
  readonly directory: string;
  readonly postgres: EmbeddedPostgres;
  readonly db: Database;
}

/** Starts a server in a directory of its own, and removes both when it is disposed of. */
export async function startTestDatabase(): Promise<TestDatabase> {
  const directory = await makeDataDirectory();
  const postgres = createEmbeddedPostgres(directory, silentLog);
  await postgres.start();
  const db = openDatabase(postgres.target, silentLog);
  await db.migrate(migrations);
  return {
    directory,
    postgres,
    db,
    async [Symbol.asyncDispose]() {
      // A test that failed may have left a transaction open.
      await Promise.race([db.close(), sleep(2_000)]);
      await postgres.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
