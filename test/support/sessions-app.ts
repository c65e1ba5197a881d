import { rm } from "node:fs/promises";
import { join } from "node:path";
import { insertAccount } from "../../src/accounts/store.ts";
import { type App, type AppOptions, createApp } from "../../src/app/app.ts";
import type { SessionService } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { createKey } from "../../src/identity/api-keys/api-keys.ts";
import { allScopes } from "../../src/identity/api-keys/scopes.ts";
import { makeAttempt } from "../../src/jobs/idempotency/request-attempt.ts";
import type { Call, MethodAttempt, Principal } from "../../src/kernel/call.ts";
import type { ServiceImplementation } from "../../src/kernel/registry.ts";
import { readConfig } from "../../src/platform/config.ts";
import { createSessionService } from "../../src/sessions/service.ts";
import { cheapPasswords } from "./cheap-passwords.ts";
import { createSharedDatabase, databaseUrl, makeDataDirectory, silentLog } from "./database.ts";
import { FakeWorker, type FakeWorkerOptions } from "./fake-worker.ts";
import { createTestClock } from "./test-clock.ts";

const token = "a token of the tests alone";

/** App with a new database and fake workers. */
export interface SessionsApp extends AsyncDisposable {
  readonly app: App;
  readonly sessions: ServiceImplementation<typeof SessionService>;
  /** URL of the database, for commands of the operator. */
  readonly databaseUrl: string;
  worker(options?: Partial<FakeWorkerOptions>): Promise<FakeWorker>;
  /** Creates an account of a tier and returns a factory of its calls. */
  caller(tier?: string): Promise<(changes?: Partial<Call>) => Call>;
  /** Advances the time by milliseconds and runs the repeated jobs that are due. */
  pass(milliseconds: number): void;
}

/** Options of an app in tests. */
export interface SessionsAppOptions extends Pick<AppOptions, "clock" | "log" | "resolve"> {
  /** Starts a separate PostgreSQL instead of using the one that files of a run share. */
  readonly ownServer?: boolean;
}

export async function startSessionsApp(
  env: Record<string, string> = {},
  { ownServer = false, ...options }: SessionsAppOptions = {},
): Promise<SessionsApp> {
  const directory = await makeDataDirectory();
  const config = readConfig({ DATA_DIR: directory, WORKER_TOKEN: token, QUEUE_MS: "1000", ...env });
  const database = config.embedded && !ownServer ? await createSharedDatabase() : undefined;
  const clock = createTestClock();
  const fixed = { workerProgram: null, passwords: cheapPasswords } as const;
  const app = createApp(config, { ...fixed, log: silentLog, clock, database, ...options });
  await app.start();
  const workers: FakeWorker[] = [];
  let disposed = false;
  const sessions = createSessionService(app);
  return {
    app,
    sessions,
    databaseUrl: config.databaseUrl ?? database?.url ?? databaseUrl(join(directory, "postgres", "run")),
    pass: clock.advance,
    async worker(options = {}) {
      const control = config.embedded ? `unix:${directory}/fleet.sock` : `127.0.0.1:${app.fleet?.port}`;
      const worker = new FakeWorker({ control, token, ...options });
      workers.push(worker);
      await worker.start();
      return worker;
    },
    async caller(tier = "enterprise") {
      const accountId = app.ids.next("acc");
      const { id: keyId } = await app.db.transaction(async (tx) => {
        await insertAccount(tx, { id: accountId, name: "Test", tier });
        return createKey(tx, app.ids, { accountId, name: "Test" });
      });
      const principal = {
        kind: "key",
        name: "Test",
        accountId,
        keyId,
        tier,
        overrides: [],
        scopes: new Set(allScopes),
      } as const;
      return (changes) => ({
        ...callOf(principal),
        ...makeAttempt(app.db, { ids: app.ids, resumes: false }),
        ...changes,
      });
    },
    async [Symbol.asyncDispose]() {
      if (disposed) return;
      disposed = true;
      for (const worker of workers) worker.die();
      await app.stop();
      await database?.[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function callOf(principal: Principal): Omit<Call, keyof MethodAttempt> {
  return {
    requestId: "req_test",
    principal,
    clientAddress: "127.0.0.1",
    signal: new AbortController().signal,
    deadline: Number.POSITIVE_INFINITY,
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
    idempotencyKey: undefined,
    markReplayed: () => undefined,
    header: () => undefined,
    setHeader: () => undefined,
    markCreated: () => undefined,
    holdCapture: () => undefined,
    announce: () => undefined,
    charge: () => undefined,
    joinSession: async () => undefined,
    startAfter: () => undefined,
    audit: () => "aud_test",
    markUnchanged: () => undefined,
  };
}
