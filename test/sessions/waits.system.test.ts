import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { afterAll, beforeAll, onTestFinished, test } from "vitest";
import { migrations } from "../../src/app/migrations.ts";
import { createChannels } from "../../src/fleet/channels.ts";
import { createWorkerHeartbeats } from "../../src/fleet/worker-heartbeats.ts";
import { CommandContextSchema, HeartbeatRequestSchema } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { CreateProfileRequestSchema } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import {
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  GetSessionStateRequestSchema,
  NavigateRequestSchema,
  NavigateResponseSchema,
  SessionStatus,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../src/kernel/call.ts";
import { fail } from "../../src/platform/errors.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { createProfileRestore } from "../../src/profiles/profile-restore.ts";
import { createProfileService } from "../../src/profiles/service.ts";
import { createSessionMetrics } from "../../src/sessions/session-metrics.ts";
import { createSessionKeeper } from "../../src/sessions/session-sweep.ts";
import { silentLog } from "../support/database.ts";
import { type FakeWorker, requestOf } from "../support/fake-worker.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";
import { expectWait, type Wait } from "../support/wait.ts";

const blank = create(CreateSessionRequestSchema, {});
const proxied = create(CreateSessionRequestSchema, { proxy: { server: "socks5://proxy.example:1080" } });

/** Address with a bot check, of whose pause the worker sends no report. */
const challenge = "https://challenge.example/";

let running: SessionsApp;
let worker: FakeWorker;
let call: (changes?: Partial<Call>) => Call;
let launches: "answered" | "silent" = "answered";
let endings: "answered" | "silent" = "answered";
/** Resolves when the worker receives a request that it does not answer. */
let asked = Promise.withResolvers<AbortSignal>();

/** Never answers. */
function stayMute({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  asked.resolve(signal);
  return new Promise(() => undefined);
}

beforeAll(async () => {
  running = await startSessionsApp();
  worker = await running.worker({
    slots: 100,
    handlers: {
      async create(from, { context }) {
        if (launches === "silent") return stayMute(from);
        worker.held.set(context?.sessionId ?? "", context?.placementEpoch ?? 0n);
        return create(EmptySchema);
      },
      async navigate(from, command) {
        if (requestOf(fleetCommands.navigate, command).url === challenge)
          return create(NavigateResponseSchema, { status: SessionStatus.PAUSED });
        return stayMute(from);
      },
      async destroy(from) {
        return endings === "silent" ? stayMute(from) : create(EmptySchema);
      },
      putProfile: stayMute,
      checkProxy: stayMute,
      async getState() {
        throw fail("session-destroyed", {}, { detail: "ended" });
      },
      async *takeProfile(from) {
        yield await stayMute(from);
      },
    },
  });
  call = await running.caller();
});
afterAll(() => running[Symbol.asyncDispose]());

/** Resolves when the worker has received its request; `end` is called when the operation ends. */
async function untilAsked(begun: Promise<unknown>, end: () => void): Promise<AbortSignal> {
  begun.then(end, end);
  return asked.promise;
}

async function launch(): Promise<string> {
  launches = "answered";
  return (await running.sessions.create(call(), blank)).id;
}

async function navigate(end: () => void, changes: Partial<Call> = {}): Promise<void> {
  const id = await launch();
  await untilAsked(
    running.sessions.navigate(call(changes), create(NavigateRequestSchema, { id, url: "https://a.example/" })),
    end,
  );
}

/** Opens the database through a proxy that holds back all replies from the first query with a text on. */
async function openMutedDatabase(muteFrom: string) {
  const socketDirectory = join(running.app.config.dataDir, "postgres", "run");
  const between = await PostgresBetween.start({ socketDirectory, name: "postgres" });
  between.muteFrom = muteFrom;
  const db = openDatabase({ url: between.url }, silentLog);
  onTestFinished(async () => {
    await between[Symbol.asyncDispose]();
    await db.close();
  });
  return { db, muted: between.muted.promise };
}

const waits: Readonly<Record<string, Wait>> = {
  "a launch": {
    ms: 32_000,
    slack: 1_000,
    async begin(end) {
      launches = "silent";
      await untilAsked(running.sessions.create(call(), blank), end);
    },
  },
  "the check of a proxy": {
    ms: 12_000,
    slack: 1_000,
    begin: (end) => untilAsked(running.sessions.create(call(), proxied), end),
  },
  "a command": { ms: 602_000, begin: (end) => navigate(end) },
  "a command whose client waits for 100 ms": {
    ms: 2_100,
    begin: (end) => navigate(end, { deadline: performance.now() + 100 }),
  },
  "a command to a session whose worker reports its end": {
    ms: 1_500,
    async begin(end) {
      const id = await launch();
      running.sessions.getState(call(), create(GetSessionStateRequestSchema, { id })).catch(end);
    },
  },
  "the save of a profile": {
    ms: 45_000,
    async begin(end) {
      launches = "answered";
      const { id: profileId } = await createProfileService(running.app).create(
        call(),
        create(CreateProfileRequestSchema, { name: "Shop" }),
      );
      const { id } = await running.sessions.create(call(), create(CreateSessionRequestSchema, { profileId }));
      const ending = running.sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
      const signal = await untilAsked(ending, () => undefined);
      signal.addEventListener("abort", end);
    },
  },
  "an unused connection to PostgreSQL": {
    ms: 600_000,
    async begin(end) {
      const socketDirectory = join(running.app.config.dataDir, "postgres", "run");
      const between = await PostgresBetween.start({ socketDirectory, name: "postgres" });
      const db = openDatabase({ url: between.url }, silentLog);
      onTestFinished(async () => {
        await db.close();
        await between[Symbol.asyncDispose]();
      });
      await sql`select 1`.execute(db.sql);
      between.connections[0]?.once("close", end);
    },
  },
  "a connection to PostgreSQL": {
    ms: 10_000,
    async begin(end) {
      const { db } = await openMutedDatabase("");
      sql`select 1`.execute(db.sql).catch(end);
    },
  },
  "a query of PostgreSQL": {
    ms: 12_000,
    slack: 1_500,
    async begin(end) {
      const { db, muted } = await openMutedDatabase("hang");
      sql`select 'hang'`.execute(db.sql).catch(end);
      await muted;
    },
  },
  "a migration of PostgreSQL": {
    ms: 602_000,
    async begin(end) {
      const { db, muted } = await openMutedDatabase("hang");
      db.migrate({ ...migrations, "999-later": ["select 'hang'"] }).catch(end);
      await muted;
    },
  },
  "a heartbeat while PostgreSQL hangs": {
    ms: 1_000,
    async begin(end) {
      const keeper = createSessionKeeper({ ...running.app, sessionMetrics: createSessionMetrics(createMetrics()) });
      const { db } = await openMutedDatabase("worker_leases");
      const heartbeat = createWorkerHeartbeats({ ...running.app, keeper, db });
      heartbeat({ id: worker.id, host: "127.0.0.1" }, create(HeartbeatRequestSchema)).then(end);
    },
  },
  "the transfer of a profile to a worker": {
    ms: 32_000,
    async begin(end) {
      const row = running.app.db.sql.selectFrom("workers").select(["id", "address", "secret_hash"]);
      const { id, address, secret_hash: secretHash } = await row.executeTakeFirstOrThrow();
      // Cast: the test implements only the method that is used.
      const db = { named: () => new Promise(() => undefined) } as unknown as Database;
      const restore = createProfileRestore({ db, sealer: running.app.sealer });
      const channels = createChannels(undefined, silentLog);
      onTestFinished(() => channels.close());
      const link = channels.to({ id, address, secretHash });
      const context = create(CommandContextSchema);
      restore({ link, context, accountId: "acc_1", profileId: "prf_1", version: 1n }).catch(end);
    },
  },
  "the end of a session on its worker": {
    ms: 2_000,
    async begin(end) {
      const id = await launch();
      endings = "silent";
      await untilAsked(running.sessions.destroy(call(), create(DestroySessionRequestSchema, { id })), end);
    },
  },
  "the report of a session's pause": {
    ms: 1_000,
    async begin(end) {
      const id = await launch();
      running.sessions.navigate(call(), create(NavigateRequestSchema, { id, url: challenge })).then(end);
    },
  },
  "the outcome of a command whose worker has died": {
    ms: 10_000,
    async begin(end) {
      await navigate(end);
      worker.die();
      // The lease exceeds the duration of the tests.
      const lease = { lease_until: new Date(Date.now() + 3_600_000) };
      await running.app.db.sql.updateTable("worker_leases").set(lease).execute();
    },
  },
  "a connection to a worker, for a launch": {
    ms: 2_000,
    begin: (end) => void running.sessions.create(call(), blank).catch(end),
  },
  "a connection to a worker, for the check of a proxy": {
    ms: 2_000,
    begin: (end) => void running.sessions.create(call(), proxied).catch(end),
  },
};

test.each(Object.entries(waits))("waits for %s neither much shorter nor longer than configured", async (_, wait) => {
  asked = Promise.withResolvers();
  endings = "answered";
  await expectWait(wait);
});
