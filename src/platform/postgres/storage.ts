import type { Config } from "../config.ts";
import { makePassableDirectory } from "../data-directory.ts";
import { unlessLate } from "../deadline.ts";
import type { Part } from "../lifetime.ts";
import type { Log } from "../log.ts";
import { type Database, type DatabaseTarget, openDatabase } from "./database.ts";
import { createEmbeddedPostgres } from "./embedded-postgres.ts";
import { createGatewayLock } from "./gateway-lock.ts";
import type { Migrations } from "./schema.ts";

/** Milliseconds for statements that run when the app is stopped. */
const closePatience = 5_000;

/** What the storage is opened with. */
export interface StorageOptions {
  readonly config: Config;
  readonly log: Log;
  readonly migrations: Migrations;
  /** Called when another gateway has taken the database: this one must end. */
  readonly onFatal: () => void;
  /** Replaces the database of the configuration. */
  readonly database: DatabaseTarget | undefined;
}

/** PostgreSQL with its migrations: that of DATABASE_URL, or one that we run. */
export function createStorage(options: StorageOptions): { db: Database; part: Part } {
  const { config, log, migrations, onFatal } = options;
  const given = options.database ?? (config.databaseUrl === undefined ? undefined : { url: config.databaseUrl });
  const postgres = given === undefined ? createEmbeddedPostgres(config.dataDir, log) : undefined;
  const target = given ?? postgres?.target ?? { url: "" };
  // Without Redis two gateways would not hear of each other.
  const lock = config.redisUrl === undefined ? createGatewayLock(target, log, onFatal) : undefined;
  const db = openDatabase(target, log);
  let isOurs = false;
  const part: Part = {
    async start() {
      await makePassableDirectory(config.dataDir);
      await postgres?.start();
      await lock?.take();
      isOurs = true;
      await db.migrate(migrations);
    },
    async stop() {
      await lock?.release();
      // A transaction that is stuck must not keep the server from being stopped.
      await unlessLate(db.close(), closePatience, () => undefined);
      // A server that another gateway uses is left to it.
      if (isOurs) await postgres?.stop();
      else postgres?.leave();
    },
  };
  return { db, part };
}
