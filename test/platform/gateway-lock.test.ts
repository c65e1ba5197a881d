import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createGatewayLock } from "../../src/platform/gateway-lock.ts";
import { silentLog, startTestDatabase, type TestDatabase } from "../support/database.ts";

const socketName = ".s.PGSQL.5432";

let database: TestDatabase;

beforeAll(async () => {
  database = await startTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

/** Stands between a gateway and PostgreSQL. */
class Intermediary {
  readonly directory: string;
  readonly connections: Socket[] = [];
  /** Keeps what PostgreSQL answers to the lock on connections that begin while it is set. */
  keepsAnswers = false;
  readonly #server: Server;

  constructor(directory: string) {
    this.directory = directory;
    this.#server = createServer((client) => {
      const postgres = connect(join(database.directory, "postgres/run", socketName));
      const keepsAnswers = this.keepsAnswers;
      let isAsked = false;
      this.connections.push(client);
      client.on("data", (data) => {
        isAsked ||= data.includes("pg_try_advisory_lock");
        postgres.write(data);
      });
      postgres.on("data", (data) => {
        if (!(isAsked && keepsAnswers)) client.write(data);
      });
      for (const [one, other] of [
        [client, postgres],
        [postgres, client],
      ] as const) {
        one.on("error", () => undefined);
        one.on("close", () => other.destroy());
      }
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(join(this.directory, socketName), resolve));
    return this;
  }

  stop(): void {
    this.#server.close();
    for (const connection of this.connections) connection.destroy();
  }
}

test("the lock is not kept from its gateway by a connection of its own whose answer came too late", async () => {
  const directory = await mkdtemp(join(tmpdir(), "lock-"));
  const between = await new Intermediary(directory).start();
  onTestFinished(async () => {
    between.stop();
    await rm(directory, { recursive: true });
  });
  const fates: string[] = [];
  const target = { socketDirectory: directory, user: "postgres" };
  const lock = createGatewayLock(target, silentLog, () => fates.push("lost"));
  onTestFinished(() => lock.release());
  await lock.take();

  between.keepsAnswers = true;
  between.connections[0]?.destroy();
  await expect.poll(() => between.connections.length, { timeout: 10_000 }).toBe(2);
  between.keepsAnswers = false;
  await expect.poll(() => between.connections[1]?.destroyed, { timeout: 10_000 }).toBe(true);
  await expect.poll(() => between.connections.filter(({ destroyed }) => !destroyed).length).toBe(1);
  const other = createGatewayLock(
    { ...target, socketDirectory: join(database.directory, "postgres/run") },
    silentLog,
    () => undefined,
  );
  await expect(other.take()).rejects.toThrow("another gateway uses this database");
  expect(fates).toEqual([]);
}, 40_000);
