import type { Config } from "../config.ts";
import { makePassableDirectory } from "../data-directory.ts";
import type { Part } from "../lifetime.ts";
import type { Log } from "../log.ts";
import { createAdvisoryLock } from "./advisory-lock.ts";
import type { DatabaseTarget } from "./database-target.ts";
import { createEmbeddedPostgres, embeddedTarget } from "./embedded-postgres.ts";

/** Returns the database target: DATABASE_URL, or the server in DATA_DIR. */
export const databaseTarget = ({ databaseUrl, dataDir }: Config): DatabaseTarget =>
  databaseUrl === undefined ? embeddedTarget(dataDir) : { url: databaseUrl };

export interface DatabaseServerOptions {
  readonly config: Config;
  readonly log: Log;
  /** Called if another service has taken the database, so that this process must exit. */
  readonly onFatal: () => void;
  /** Running database that replaces the configured database. */
  readonly database?: DatabaseTarget | undefined;
}

/** Runs PostgreSQL unless DATABASE_URL is set. Locks the database against other services unless REDIS_URL is set. */
export function createDatabaseServer({ config, log, onFatal, database }: DatabaseServerOptions): Part {
  const isGiven = database !== undefined || config.databaseUrl !== undefined;
  const postgres = isGiven ? undefined : createEmbeddedPostgres(config.dataDir, log);
  // Without Redis, a second service would miss changes, so a lock excludes it.
  const target = database ?? databaseTarget(config);
  const lock =
    config.redisUrl === undefined ? createAdvisoryLock({ target, log, number: 1, onLost: onFatal }) : undefined;
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
      // Leaves the server to the other service that uses it.
      if (isOurs) await postgres?.stop();
      else postgres?.leave();
    },
  };
}
