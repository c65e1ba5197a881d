import { expect, test } from "vitest";
import { createAdvisoryLock } from "../../src/platform/postgres/advisory-lock.ts";
import { silentLog, startTestDatabase } from "../support/database.ts";
import { PostgresBetween } from "../support/postgres-between.ts";

test("a gateway can acquire its lock although its own late connection still holds it", async () => {
  await using database = await startTestDatabase();
  await using between = await PostgresBetween.start(database);
  const fates: string[] = [];
  const lock = createAdvisoryLock({
    target: { url: between.url },
    log: silentLog,
    number: 1,
    onLost: () => fates.push("lost"),
  });
  const holders = {
    name: "holders",
    text: `select pid from pg_locks join pg_database on pg_database.oid = database
      where datname = current_database() and locktype = 'advisory' and granted`,
  };
  const seen = new Set<number>();
  /** Counts the connections that have held the lock so far. */
  const countHolders = async (): Promise<number> => {
    for (const { pid } of await database.db.named<{ pid: number }>(holders, [])) seen.add(pid);
    return seen.size;
  };
  await lock.take();
  expect(await countHolders()).toBe(1);

  between.muteFrom = "pg_try_advisory_lock";
  between.connections[0]?.destroy();
  // Late connections are given up one by one.
  await expect.poll(countHolders).toBeGreaterThanOrEqual(2);
  between.muteFrom = undefined;
  const muted = seen.size;
  await expect.poll(countHolders).toBeGreaterThan(muted);
  expect(fates).toEqual([]);
  await lock.release();
}, 60_000);
