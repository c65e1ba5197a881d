import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  CreateSessionRequestSchema,
  GetSessionStateRequestSchema,
  NavigateRequestSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../src/kernel/call.ts";
import { fail } from "../../src/platform/errors.ts";
import { startTestDatabase } from "../support/database.ts";
import type { FakeWorkerOptions } from "../support/fake-worker.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

/** Launches a session on a fake worker. The gateway has cached its route. */
async function launch(handlers: NonNullable<FakeWorkerOptions["handlers"]>) {
  await using opened = new AsyncDisposableStack();
  const database = opened.use(await startTestDatabase());
  const between = opened.use(await PostgresBetween.start(database));
  const running = opened.use(
    await startSessionsApp({
      DATABASE_URL: between.url,
      HOST: "127.0.0.1",
      FLEET_PORT: "0",
      SIGNUP: "closed",
      SECRETS_KEYS: testSecretsKeys,
    }),
  );
  const worker = await running.worker({ handlers });
  const call = await running.caller();
  const { id } = await running.sessions.create(call(), create(CreateSessionRequestSchema, {}));
  await running.sessions.getState(call(), create(GetSessionStateRequestSchema, { id }));
  const request = create(NavigateRequestSchema, { id, url: "https://example.com/" });
  const cleanup = opened.move();
  // The app can stop only while PostgreSQL is reachable.
  cleanup.defer(() => {
    between.isAway = false;
  });
  return {
    between,
    worker,
    navigate: (changes?: Partial<Call>) => running.sessions.navigate(call(changes), request),
    [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
  };
}

test("a conflict during a PostgreSQL outage is reported, and the session continues", async () => {
  await using session = await launch({
    navigate: async () => {
      throw fail("conflict", {}, { detail: "the worker refuses" });
    },
  });
  session.between.isAway = true;
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await expect(session.navigate()).rejects.toMatchObject({ slug: "conflict", detail: "the worker refuses" });
  }
});

test("a lost worker during a PostgreSQL outage is reported as an unknown outcome", async () => {
  const started = Promise.withResolvers<void>();
  await using session = await launch({
    navigate: () => {
      started.resolve();
      return new Promise(() => undefined);
    },
  });
  session.between.isAway = true;
  const navigation = session.navigate({ deadline: performance.now() + 1_000 });
  const failed = expect(navigation).rejects.toMatchObject({ slug: "driver-error", extensions: { worker_lost: true } });
  await started.promise;
  session.worker.die();
  await failed;
});
