import { waitUntil } from "../bounded-wait.ts";
import type { Config } from "../config.ts";
import { makePassableDirectory } from "../data-directory.ts";
import { unlessLate } from "../deadline.ts";
import type { Part } from "../lifetime.ts";
import type { Log } from "../log.ts";
import { StartRefused } from "../start-refused.ts";
import { type Database, type DatabaseTarget, openDatabase } from "./database.ts";
import { createEmbeddedPostgres, embeddedTarget } from "./embedded-postgres.ts";
import { createLoneLock } from "./lone-lock.ts";
import type { Migrations } from "./schema.ts";

/** Milliseconds. */
const times = {
  /** For statements that run when the app is stopped. */
  close: 5_000,
  /** Until PostgreSQL answers and the migrations have been run. */
  ready: 60_000,
  /** Between two looks for that. */
  look: 50,
};

/** Where the database is: at DATABASE_URL, or below DATA_DIR. */
export const databaseTarget = ({ databaseUrl, dataDir }: Config): DatabaseTarget =>
  databaseUrl === undefined ? embeddedTarget(dataDir) : { url: databaseUrl };

export interface DatabaseServerOptions {
  readonly config: Config;
  readonly log: Log;
  /** Called when another service has taken the database: this one must end. */
  readonly onFatal: () => void;
  /** Replaces the database of the configuration by one that runs already. */
  readonly database?: DatabaseTarget | undefined;
}

/** Runs PostgreSQL if there is no DATABASE_URL, and keeps other services off the database if there is no REDIS_URL. */
export function createDatabaseServer({ config, log, onFatal, database }: DatabaseServerOptions): Part {
  const isGiven = database !== undefined || config.databaseUrl !== undefined;
  const postgres = isGiven ? undefined : createEmbeddedPostgres(config.dataDir, log);
  // Without Redis two services could not tell each other of changes.
  const target = database ?? databaseTarget(config);
  const lock = config.redisUrl === undefined ? createLoneLock({ target, log, number: 1, onLost: onFatal }) : undefined;
  let isOurs = false;
  return {
    async start() {
      await makePassableDirectory(config.dataDir);
      await postgres?.start();
      await lock?.take();
      isOurs = true;
    },
    async stop() {
      await lock?.release();
      // A server that another service uses is left to it.
      if (isOurs) await postgres?.stop();
      else postgres?.leave();
    },
  };
}

/** The database of a process. */
export interface Storage {
  readonly db: Database;
  /** Waits for PostgreSQL, and readies the tables. */
  readonly part: Part;
  /** Says whether PostgreSQL answers. */
  isReady(): Promise<boolean>;
}

export interface StorageOptions {
  /** Whether the process runs the migrations, or waits until another one has. */
  readonly readying: "migrate" | "await";
  /** Connections at most. */
  readonly poolSize?: number;
}

/** Opens the database of a process. */
export function openStorage(
  target: DatabaseTarget,
  log: Log,
  migrations: Migrations,
  { readying, poolSize = 20 }: StorageOptions,
): Storage {
  const db = openDatabase(target, log, poolSize);
  const part: Part = {
    async start() {
      await awaitReady(readying === "migrate" ? findAbsence : findMissingMigration);
      if (readying === "migrate") await db.migrate(migrations);
    },
    async stop() {
      // A transaction that is stuck must not keep the server from being stopped.
      await unlessLate(db.close(), times.close, () => undefined);
    },
  };

  const findAbsence = (): Promise<undefined> => db.named({ name: "ready", text: "select 1" }, []).then(() => undefined);

  /** Migrations of later releases are accepted: each is safe while the release before it runs. */
  async function findMissingMigration(): Promise<string | undefined> {
    const applied = await db.appliedMigrations();
    const missing = Object.keys(migrations).filter((name) => !applied.has(name));
    return missing.length === 0
      ? undefined
      : `the migration ${missing[0]} was not run within ${times.ready / 1_000} s: a control process does that`;
  }

  async function awaitReady(findObstacle: () => Promise<string | undefined>): Promise<void> {
    let obstacle: string | undefined;
    const isClear = async (): Promise<boolean> => {
      obstacle = await findObstacle().catch((error: Error) => `PostgreSQL cannot be used: ${error.message}`);
      return obstacle === undefined;
    };
    if (!(await waitUntil(isClear, { timeout: times.ready, every: times.look }))) throw new StartRefused(obstacle);
  }

  return {
    db,
    part,
    isReady: () =>
      findAbsence().then(
        () => true,
        () => false,
      ),
  };
}
