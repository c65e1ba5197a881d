import pg from "pg";
import { sleep } from "../bounded-wait.ts";
import type { Log } from "../log.ts";
import { StartRefused } from "../start-refused.ts";
import { connectionOptions, type DatabaseTarget } from "./database-target.ts";

/** First key of the service's advisory locks: "pilo". */
export const lockClass = 0x70696c6f;

/**
 * Milliseconds to wait for the lock, and for the response to a single attempt. PostgreSQL releases the lock of a killed
 * process sooner.
 */
const timeout = 3_000;
const retryEvery = 100;

/** Advisory lock on a dedicated connection. PostgreSQL releases the lock when the process dies. */
export interface AdvisoryLock {
  /** Acquires the lock. Rejects with StartRefused if another process holds it for 3 s. */
  take(): Promise<void>;
  /** Returns whether the lock is held, as far as known. */
  isHeld(): boolean;
  release(): Promise<void>;
}

export interface AdvisoryLockOptions {
  readonly target: DatabaseTarget;
  readonly log: Log;
  /** Second key: 1 for the lock of the only service of a database, or the number of a gateway. */
  readonly number: number;
  /** Called if another process took the lock while the connection was broken. */
  onLost(): void;
}

/** Creates the lock. Acquires it again if its connection is lost, as when PostgreSQL restarts. */
export function createAdvisoryLock({ target, log, number, onLost }: AdvisoryLockOptions): AdvisoryLock {
  let holder: pg.Client | undefined;
  let released = false;

  async function tryTake(): Promise<boolean> {
    const client = new pg.Client({ ...connectionOptions(target), query_timeout: timeout });
    client.on("error", () => undefined);
    let taken = false;
    try {
      await client.connect();
      const { rows } = await client.query<{ taken: boolean }>("select pg_try_advisory_lock($1, $2) as taken", [
        lockClass,
        number,
      ]);
      taken = rows[0]?.taken === true && !released;
    } finally {
      // A late response may still have acquired the lock, so the connection must be closed.
      if (!taken) await client.end().catch(() => undefined);
    }
    if (!taken) return false;
    holder = client;
    client.once("end", () => {
      holder = undefined;
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
      const taken = await takeWithin(timeout).catch(() => undefined);
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
      if (await takeWithin(timeout)) return;
      throw new StartRefused(
        "another service uses this database: use a separate DATA_DIR or DATABASE_URL, or set REDIS_URL on all processes",
      );
    },
    isHeld: () => holder !== undefined,
    async release() {
      released = true;
      await holder?.end().catch(() => undefined);
    },
  };
}
