import { expect, test } from "vitest";
import { startSessionsApp } from "../support/sessions-app.ts";

test("heartbeats are answered while PostgreSQL hangs, and the latest is stored afterwards", async () => {
  await using running = await startSessionsApp();
  const { db } = running.app;
  const worker = await running.worker();
  worker.fallSilent();
  await worker.heartbeat();
  const row = db.sql.selectFrom("worker_leases").select(["draining", "closed_by"]).where("worker_id", "=", worker.id);
  const { promise: hanging, resolve: goOn } = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const lock = db.transaction(async (tx) => {
    await tx.sql.selectFrom("workers").select("id").where("id", "=", worker.id).forUpdate().execute();
    held.resolve();
    await hanging;
  });
  await held.promise;
  // Each within the 2 s that a worker waits.
  await Promise.all([
    worker.heartbeat(),
    worker.heartbeat({ closedBy: "cpu" }),
    worker.heartbeat({ closedBy: "memory", draining: true }),
  ]);
  goOn();
  await lock;
  await expect.poll(() => row.executeTakeFirst(), { timeout: 10_000 }).toEqual({ draining: true, closed_by: "memory" });
}, 30_000);
