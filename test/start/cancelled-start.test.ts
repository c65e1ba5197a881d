import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { startTestDatabase } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { withLong } from "../support/long-test.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";

/** The processes wait 60 s for their database, and 10 s for a connection. */
const atOnceMs = 5_000;

/** Starts the service. Resolves when as many of its processes as given have logged their start. */
async function startUntilItWaits(env: Record<string, string>, processes: number): Promise<ChildProcess> {
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT", "FLEET_PORT");
  const texts = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const own = { SECRETS_KEYS: testSecretsKeys, SIGNUP: "closed", WORKER_TOKEN: "a token of the tests alone" };
  const child = spawn(process.execPath, ["gateway/main.ts"], {
    env: { ...process.env, LOG_LEVEL: "info", HOST: "127.0.0.1", ...own, ...texts, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  child.stderr?.on("data", (text: Buffer) => {
    log += text;
  });
  await expect.poll(() => log.match(/"the process starts"/g)?.length, { timeout: 40_000 }).toBe(processes);
  return child;
}

/** Sends SIGTERM. Returns the exit status, and whether the process ended before its wait for the database. */
async function terminate(child: ChildProcess): Promise<{ status: number | null; isAtOnce: boolean }> {
  const ended = once(child, "exit");
  const signalledAt = performance.now();
  child.kill("SIGTERM");
  const [status] = await ended;
  return { status, isAtOnce: performance.now() - signalledAt < atOnceMs };
}

const redis = "redis://127.0.0.1:1";

// A service on one machine starts the programs of both other rows.
const started = withLong<[name: string, env: Record<string, string>, processes: number]>(
  [["a service on one machine", {}, 3]],
  [
    ["a gateway", { REDIS_URL: redis }, 1],
    ["a control process", { REDIS_URL: redis, ROLE: "control" }, 1],
  ],
);

test.each(started)(
  "%s that waits for migrations ends at once after SIGTERM",
  async (_name, env, processes) => {
    await using database = await startTestDatabase();
    const newest = sql`select max(name) from kysely_migration`;
    await sql`delete from kysely_migration where name = (${newest})`.execute(database.db.sql);
    const child = await startUntilItWaits({ ...env, DATABASE_URL: database.url, MIGRATE: "off" }, processes);
    expect(await terminate(child)).toEqual({ status: 0, isAtOnce: true });
  },
  120_000,
);

test("a gateway ends at once after SIGTERM if PostgreSQL accepts connections and does not respond", async () => {
  const silent = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
  onTestFinished(() => void silent.close());
  await once(silent, "listening");
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const url = `postgres://nobody@127.0.0.1:${port}/none`;
  const connected = once(silent, "connection");
  const child = await startUntilItWaits({ REDIS_URL: redis, DATABASE_URL: url }, 1);
  await connected;
  expect(await terminate(child)).toEqual({ status: 0, isAtOnce: true });
}, 120_000);
