import { expect, test } from "vitest";
import { joinCapacityWaits, sweepCapacityWaits } from "../../src/fleet/capacity-waits.ts";
import { findPoolDemand } from "../../src/fleet/pool-demand.ts";
import { readWorkerConfig } from "../../workers/base/config.ts";
import { moveTime } from "../support/move-time.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

test("a wait counts for 3 s after its gateway renewed it last, and is deleted a minute later", async () => {
  await using running = await startSessionsApp();
  const { db } = running.app;
  const worker = await running.worker({ slots: 4, pool: "small" });
  worker.fallSilent();
  const join = (runtime: string) =>
    db.transaction(async (tx) => joinCapacityWaits(tx, { id: `of ${runtime}`, runtime }));
  await Promise.all(["chromium", "headless-shell", "of another pool"].map(join));
  const waiting = async () => (await findPoolDemand(db, "small"))?.waiting;
  const rows = async () => (await db.sql.selectFrom("capacity_waits").select("id").execute()).length;
  await moveTime(db, 2_500);
  expect(await waiting()).toBe(2);
  await join("chromium");
  await moveTime(db, 3_500);
  expect(await waiting()).toBe(1);
  await moveTime(db, 50_000);
  await sweepCapacityWaits(db);
  expect(await rows()).toBe(3);
  await moveTime(db, 67_000);
  await sweepCapacityWaits(db);
  expect([await waiting(), await rows()]).toEqual([0, 0]);
});

test("the headroom is a fifth of the used slots, at least two slots", async () => {
  await using running = await startSessionsApp();
  const worker = await running.worker({ slots: 20 });
  worker.fallSilent();
  const demand = () => findPoolDemand(running.app.db, "default");
  expect(await demand()).toMatchObject({ wanted_workers: 1, held_slots: 0, headroom_slots: 2 });
  await worker.heartbeat({ closedBy: "cpu" });
  expect(await demand()).toMatchObject({ wanted_workers: 2, held_slots: 20, headroom_slots: 4 });
});

test("refuses a pool that cannot be part of a path", async () => {
  const needed = { WORKER_LISTEN: "127.0.0.1:1", CONTROL: "127.0.0.1:2", WORKER_TOKEN: "0123456789abcdef" };
  const poolOf = (WORKER_POOL: string) => readWorkerConfig({ ...needed, WORKER_POOL }).pool;
  expect([poolOf(""), poolOf("gpu-2")]).toEqual(["default", "gpu-2"]);
  for (const pool of ["GPU", "a/b", "-a", "a".repeat(64)]) expect(() => poolOf(pool)).toThrow(/WORKER_POOL accepts/);
  await using running = await startSessionsApp();
  const worker = await running.worker();
  await expect(worker.register({ pool: "a/b" })).rejects.toThrow(/pool/);
});
