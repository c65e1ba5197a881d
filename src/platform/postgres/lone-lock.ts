import pg from "pg";
import { sleep } from "../bounded-wait.ts";
import type { Log } from "../log.ts";
import { StartRefused } from "../start-refused.ts";
import { connectionOptions, type DatabaseTarget } from "./database.ts";

/** The pair of numbers of the advisory lock: "pilo", and 1 for a service on one machine. */
const lockKey = [0x70696c6f, 1] as const;

/** Milliseconds: a killed service's connection, and with it its lock, is gone well within this. */
const patience = 3_000;
const retryEvery = 100;

/** The right to be the only service of a database, held by a connection of its own. */
export interface LoneLock {
  /** Takes the lock; throws when another service has it. */
  take(): Promise<void>;
  release(): Promise<void>;
}

/**
 * Makes the lock. When its connection breaks (PostgreSQL restarts) it is taken again as soon as that is possible, and
 * `onLost` is called if another service was faster.
 */
export function createLoneLock(target: DatabaseTarget, log: Log, onLost: () => void): LoneLock {
  let holder: pg.Client | undefined;
  let released = false;

  async function tryTake(): Promise<boolean> {
    const client = new pg.Client({ ...connectionOptions(target), query_timeout: patience });
    client.on("error", () => undefined);
    let taken = false;
    try {
      await client.connect();
      const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1, $2) as taken", [
        ...lockKey,
      ]);
      taken = rows[0]?.taken === true && !released;
    } finally {
      // One whose answer came too late may have the lock: kept open, it would keep it from us.
      if (!taken) await client.end().catch(() => undefined);
    }
    if (!taken) return false;
    holder = client;
    client.once("end", () => {
      if (!released) void retake();
    });
    return true;
  }

  async function takeWithin(milliseconds: number): Promise<boolean> {
    const deadline = performance.now() + milliseconds;
    while (!(await tryTake())) {
      if (performance.now() > deadline || released) return false;
      await sleep(retryEvery);
    }
    return true;
  }

  async function retake(): Promise<void> {
    while (!released) {
      const taken = await takeWithin(patience).catch(() => undefined);
      if (taken) return;
      if (taken === false && !released) {
        log.fatal("another service has taken the database");
        onLost();
        return;
      }
      await sleep(retryEvery);
    }
  }

  return {
    async take() {
      if (await takeWithin(patience)) return;
      throw new StartRefused(
        "another service uses this database: give each DATA_DIR and DATABASE_URL to one, or set REDIS_URL on all processes",
      );
    },
    async release() {
      released = true;
      await holder?.end().catch(() => undefined);
    },
  };
}
