import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { startTestDatabase } from "../support/database.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

test("the sessions of a worker are ended in a constant number of round trips", async () => {
  await using database = await startTestDatabase();
  await using between = await PostgresBetween.start(database);
  await using running = await startSessionsApp({
    DATABASE_URL: between.url,
    HOST: "127.0.0.1",
    FLEET_PORT: "0",
    SIGNUP: "closed",
    SECRETS_KEYS: testSecretsKeys,
  });
  const worker = await running.worker({ slots: 100 });
  const call = await running.caller();

  /** Counts the queries for sessions to end when their worker has restarted. */
  async function questionsOfEnds(count: number): Promise<number> {
    const ids: string[] = [];
    while (ids.length < count) {
      ids.push((await running.sessions.create(call(), create(CreateSessionRequestSchema, {}))).id);
    }
    worker.held.clear();
    const before = between.asked;
    await worker.register({ bootId: randomUUID() });
    const questions = between.asked - before;
    const { db } = running.app;
    const rows = await db.sql.selectFrom("sessions").select("ended_reason").where("id", "in", ids).execute();
    expect(rows.map(({ ended_reason }) => ended_reason)).toEqual(ids.map(() => "worker_lost"));
    await worker.heartbeat();
    return questions;
  }

  const ofOne = await questionsOfEnds(1);
  // Background queries are counted too, but their number does not grow with the sessions.
  expect(await questionsOfEnds(90)).toBeLessThan(ofOne + 45);
}, 60_000);
