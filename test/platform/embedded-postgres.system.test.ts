import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { createLog, type Log } from "../../src/platform/log.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { isDatabaseUnavailable } from "../../src/platform/postgres/database-unavailable.ts";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { isAlive } from "../../src/platform/process-control.ts";
import { makeClusterDirectory, silentLog } from "../support/database.ts";
import { longTest } from "../support/long-test.ts";

// Some tests recover a cluster, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Creates a directory with a cluster. */
async function directoryOfTest(): Promise<string> {
  const directory = await makeClusterDirectory();
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

function serverIn(directory: string): EmbeddedPostgres {
  const server = createEmbeddedPostgres(directory, silentLog);
  cleanups.push(() => server.stop());
  return server;
}

/** Log that records error messages. */
function listeningLog(): { log: Log; complaints: string[] } {
  const complaints: string[] = [];
  const receive = (_fields: unknown, text = "") => void complaints.push(text);
  return { log: Object.assign(createLog("silent"), { error: receive, fatal: receive }), complaints };
}

async function pidIn(directory: string): Promise<number> {
  return Number.parseInt(await readFile(join(directory, "postgres", "data", "postmaster.pid"), "utf8"), 10);
}

/** Starts a server from another process, as a gateway does, and kills that process with SIGKILL. */
async function startAndLoseOwner(directory: string): Promise<void> {
  const owner = fork(new URL("./postgres-owner.ts", import.meta.url), [directory], { stdio: "inherit" });
  await once(owner, "message");
  owner.kill("SIGKILL");
  await once(owner, "exit");
}

test("adopts a server whose owner was killed, with its committed data", async () => {
  const directory = await directoryOfTest();
  await startAndLoseOwner(directory);
  const pid = await pidIn(directory);
  expect(isAlive(pid)).toBe(true);

  const server = serverIn(directory);
  await server.start();
  expect(await pidIn(directory)).toBe(pid);
  const db = openDatabase(server.target, silentLog);
  cleanups.push(() => db.close());
  expect(await db.named({ name: "kept", text: "select word from kept" }, [])).toEqual([{ word: "durable" }]);

  await db.close();
  cleanups.pop();
  await server.stop();
  expect(isAlive(pid)).toBe(false);
});

longTest("recovers after owner and postmaster were killed together", async () => {
  const directory = await directoryOfTest();
  await startAndLoseOwner(directory);
  process.kill(await pidIn(directory), "SIGKILL");

  const server = serverIn(directory);
  await server.start();
  const db = openDatabase(server.target, silentLog);
  cleanups.push(() => db.close());
  expect(await db.named({ name: "kept", text: "select word from kept" }, [])).toEqual([{ word: "durable" }]);
});

test("restarts a server that dies and answers `internal` with Retry-After until then", async () => {
  const directory = await directoryOfTest();
  const server = serverIn(directory);
  await server.start();
  const db = openDatabase(server.target, silentLog);
  cleanups.push(() => db.close());
  const ask = () => db.named({ name: "one", text: "select 1 as one" }, []);
  await ask();
  process.kill(await pidIn(directory), "SIGKILL");

  // A backend of a killed postmaster may still answer for a moment.
  let failure: unknown;
  while (failure === undefined) await ask().catch((error: unknown) => (failure = error));
  expect(failure).toSatisfy(isDatabaseUnavailable);
  expect(failure).toMatchObject({ slug: "internal", retryAfter: 1 });
  await expect.poll(() => ask().catch(() => undefined), { timeout: 20_000 }).toEqual([{ one: 1 }]);
});

longTest(
  "keeps retrying when the server does not start again",
  async () => {
    const directory = await directoryOfTest();
    const { log, complaints } = listeningLog();
    const server = createEmbeddedPostgres(directory, log);
    cleanups.push(() => server.stop());
    await server.start();
    const settings = join(directory, "postgres", "data", "postgresql.conf");
    const sound = await readFile(settings, "utf8");
    await writeFile(settings, "no setting\n");
    process.kill(await pidIn(directory), "SIGKILL");
    await expect.poll(() => complaints.at(-1), { timeout: 30_000 }).toMatch(/failed to restart/);

    await writeFile(settings, sound);
    const db = openDatabase(server.target, silentLog);
    cleanups.push(() => db.close());
    const ask = () => db.named({ name: "one", text: "select 1 as one" }, []);
    await expect.poll(() => ask().catch(() => undefined), { timeout: 30_000 }).toEqual([{ one: 1 }]);
  },
  60_000,
);

test("rejects a directory of another major version with instructions", async () => {
  const directory = await directoryOfTest();
  await writeFile(join(directory, "postgres", "data", "PG_VERSION"), "15\n");

  await expect(serverIn(directory).start()).rejects.toThrow(/created by PostgreSQL 15, .*copy-database.*DATABASE_URL/);
});

longTest("initialises the directory again after an interrupted initialisation", async () => {
  const directory = await directoryOfTest();
  await rm(join(directory, "postgres", "data"), { recursive: true });
  await writeFile(join(directory, "postgres", "data.new"), "half");

  await serverIn(directory).start();
});
