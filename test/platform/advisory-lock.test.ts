import { expect, onTestFinished, test } from "vitest";
import { createAdvisoryLock } from "../../src/platform/postgres/advisory-lock.ts";
import { silentLog, startTestDatabase } from "../support/database.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { fakeTime, pass, restoreTime } from "../support/wait.ts";

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

test("refuses a lock that another process holds for 3 s", async () => {
  await using database = await startTestDatabase();
  const options = { target: { url: database.url }, log: silentLog, number: 1, onLost: () => undefined };
  const [lock, other] = [createAdvisoryLock(options), createAdvisoryLock(options)];
  await lock.take();
  fakeTime();
  onTestFinished(restoreTime);
  const since = performance.now();
  const taking = expect(other.take()).rejects.toThrow("another service uses this database");
  let passed: number | undefined;
  void taking.then(() => {
    passed = performance.now() - since;
  });
  // In small steps, because connections take real time.
  while (passed === undefined && performance.now() - since < 10_000) await pass(100);
  expect(passed).toBeGreaterThan(2_000);
  expect(passed).toBeLessThan(9_000);
  await taking;
  restoreTime();
  await lock.release();
});
