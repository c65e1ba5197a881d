import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { startTestDatabase } from "../support/database.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

test("the sessions of a worker end in as many round trips as one", async () => {
  await using database = await startTestDatabase();
  await using between = await PostgresBetween.start(database);
  const address = `postgres://localhost/postgres?user=postgres&host=${encodeURIComponent(between.directory)}`;
  await using running = await startSessionsApp({ DATABASE_URL: address, HOST: "127.0.0.1", FLEET_PORT: "0" });
  const worker = await running.worker({ slots: 100 });
  const call = await running.caller();

  /** Milliseconds in which sessions end when their worker has been started again, over a slow connection. */
  async function timeOfEnds(count: number): Promise<number> {
    const ids: string[] = [];
    while (ids.length < count) {
      ids.push((await running.sessions.create(call(), create(CreateSessionRequestSchema, {}))).id);
    }
    worker.held.clear();
    between.delayMs = 50;
    const began = performance.now();
    await worker.register({ bootId: randomUUID() });
    const took = performance.now() - began;
    between.delayMs = 0;
    const { db } = running.app;
    const rows = await db.sql.selectFrom("sessions").select("ended_reason").where("id", "in", ids).execute();
    expect(rows.map(({ ended_reason }) => ended_reason)).toEqual(ids.map(() => "worker_lost"));
    await worker.heartbeat();
    return took;
  }

  const ofOne = await timeOfEnds(1);
  expect(await timeOfEnds(20)).toBeLessThan(2 * ofOne);
}, 60_000);
