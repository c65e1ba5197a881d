import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { createApp } from "../../src/app/app.ts";
import {
  CreateSessionRequestSchema,
  GetSessionRequestSchema,
  NavigateRequestSchema,
  SessionStatus,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { createEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { silentLog, startOwnDatabase } from "../support/database.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

/** Longer than a lease. */
const outage = 9_000;

test("sessions survive an outage of PostgreSQL that is longer than a lease", async () => {
  await using database = await startOwnDatabase();
  await using running = await startSessionsApp({
    DATABASE_URL: database.url,
    HOST: "127.0.0.1",
    FLEET_PORT: "0",
    SIGNUP: "closed",
    SECRETS_KEYS: testSecretsKeys,
  });
  const { sessions } = running;
  const worker = await running.worker();
  const call = await running.caller();
  const { id } = await sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const navigate = () => sessions.navigate(call(), create(NavigateRequestSchema, { id, url: "https://example.com/" }));
  const get = () => sessions.get(call(), create(GetSessionRequestSchema, { id }));
  await navigate();

  await database.postgres.stop();
  await expect(get()).rejects.toMatchObject({ slug: "internal", retryAfter: 1 });
  await sleep(outage);
  await worker.heartbeat();
  // Answered from memory: nothing can be revoked either, so the session continues.
  expect(await navigate()).toMatchObject({ httpStatus: 200 });

  const again = createEmbeddedPostgres(database.directory, silentLog);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => again.stop());
  cleanup.defer(() => running[Symbol.asyncDispose]());
  await again.start();
  const swept = running.app.db.sql.selectFrom("lease_sweep").select("swept_at");
  const { swept_at: before } = await swept.executeTakeFirstOrThrow();
  await expect
    .poll(async () => Number((await swept.executeTakeFirstOrThrow()).swept_at) - Number(before), { timeout: 10_000 })
    .toBeGreaterThan(2_000);
  expect((await get()).status).toBe(SessionStatus.LIVE);
}, 60_000);

test("a second service on the same database is refused without affecting the first", async () => {
  await using running = await startSessionsApp();
  const second = createApp(running.app.config, { log: silentLog, workerProgram: null });
  await expect(second.start()).rejects.toThrow(/another service uses this database/);
  await second.stop();
  expect(await running.app.isReady()).toBe(true);
});
