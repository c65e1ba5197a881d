import { waitUntil } from "../bounded-wait.ts";
import { raceSignal, unlessLate } from "../deadline.ts";
import type { Part } from "../lifetime.ts";
import type { Log } from "../log.ts";
import { StartRefused } from "../start-refused.ts";
import { type Database, openDatabase } from "./database.ts";
import type { DatabaseTarget } from "./database-target.ts";
import { refuseUnreleased } from "./run-migrations.ts";
import type { Migrations } from "./schema.ts";

/** Milliseconds. */
const times = {
  /** Maximum wait for running statements at shutdown. */
  close: 5_000,
  /** Maximum wait until PostgreSQL responds and migrations are applied. */
  ready: 60_000,
  /** Polling interval. */
  poll: 50,
};

export interface Storage {
  readonly db: Database;
  /**
   * Part of the process. `start` waits for PostgreSQL, then runs or awaits the migrations. `stop` closes the
   * connections.
   */
  readonly part: Part;
  /** Returns whether PostgreSQL responds. */
  isReady(): Promise<boolean>;
}

export interface StorageOptions {
  /** Whether to run the migrations or to wait for another process to do so. */
  readonly schemaMode: "migrate" | "await";
  readonly poolSize?: number;
}

/** Opens the database of a process. */
export function openStorage(
  target: DatabaseTarget,
  log: Log,
  migrations: Migrations,
  { schemaMode, poolSize = 20 }: StorageOptions,
): Storage {
  const db = openDatabase(target, log, poolSize);
  let hasResponded = false;
  const part: Part = {
    async start(signal = new AbortController().signal) {
      await awaitReady(schemaMode === "migrate" ? checkConnection : findMissingMigration, signal);
      hasResponded = true;
      if (schemaMode === "migrate") await db.migrate(migrations);
    },
    async stop() {
      // A stuck transaction, or a server that accepts connections and does not respond, must not block the shutdown.
      await unlessLate(db.close(), hasResponded ? times.close : 0, () => undefined);
    },
  };

  const checkConnection = (): Promise<undefined> =>
    db.named({ name: "ready", text: "select 1" }, []).then(() => undefined);

  /** Describes missing migrations. Accepts migrations of later releases, which are safe for this release. */
  async function findMissingMigration(): Promise<string | undefined> {
    const applied = await db.appliedMigrations();
    refuseUnreleased(applied, migrations);
    const missing = Object.keys(migrations).filter((name) => !applied.has(name));
    return missing.length === 0
      ? undefined
      : `migration ${missing[0]} was not applied within ${times.ready / 1_000} s: start a control process without MIGRATE=off, or run \`npm run admin -- migrate\``;
  }

  async function awaitReady(findObstacle: () => Promise<string | undefined>, signal: AbortSignal): Promise<void> {
    let obstacle: string | undefined;
    const isClear = async (): Promise<boolean> => {
      signal.throwIfAborted();
      obstacle = await findObstacle().catch((error: Error) => {
        if (error instanceof StartRefused) throw error;
        return `PostgreSQL cannot be used: ${error.message}`;
      });
      return obstacle === undefined;
    };
    const ready = waitUntil(isClear, { timeout: times.ready, every: times.poll });
    if (!(await raceSignal(ready, signal))) throw new StartRefused(obstacle);
  }

  return {
    db,
    part,
    isReady: () =>
      checkConnection().then(
        () => true,
        () => false,
      ),
  };
}
