import { create } from "@bufbuild/protobuf";
import { insertAccount } from "../../src/accounts/store.ts";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createKey } from "../../src/identity/api-keys/api-keys.ts";
import { type Bearers, createBearers } from "../../src/identity/bearers.ts";
import type { BearerKind } from "../../src/kernel/bearer-kind.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import type { Database } from "../../src/platform/postgres/database.ts";
import { silentLog } from "./database.ts";
import { type SessionsApp, startSessionsApp } from "./sessions-app.ts";

/** Bearers of one kind on the test's clock, and sessions that they can belong to. */
export interface BearerScene extends AsyncDisposable {
  readonly running: SessionsApp;
  readonly bearers: Bearers;
  /** Creates a session, and a key of another account with an optional expiry. */
  makeSession(keyExpiresAt?: Date): Promise<{ readonly sessionId: string; readonly keyId: string }>;
}

export async function startBearerScene(kindOf: (db: Database) => BearerKind, clock: Clock): Promise<BearerScene> {
  const running = await startSessionsApp();
  await running.worker({ slots: 10 });
  const { app, sessions } = running;
  const { db, bus } = app;
  const bearers = createBearers({ kinds: [kindOf(db)], bus, clock, log: silentLog, registry: createMetrics() });
  bearers.start();
  return {
    running,
    bearers,
    async makeSession(expiresAt) {
      const accountId = app.ids.next("acc");
      const { id: keyId } = await db.transaction(async (tx) => {
        await insertAccount(tx, { id: accountId, name: "Test", tier: "enterprise" });
        return createKey(tx, app.ids, { accountId, name: "test", ...(expiresAt && { expiresAt }) });
      });
      const call = await running.caller();
      const { id: sessionId } = await sessions.create(call(), create(CreateSessionRequestSchema, {}));
      return { sessionId, keyId };
    },
    async [Symbol.asyncDispose]() {
      await bearers.stop();
      await running[Symbol.asyncDispose]();
    },
  };
}
