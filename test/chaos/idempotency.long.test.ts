import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { createKey } from "../../src/identity/api-keys/api-keys.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createIds } from "../../src/platform/ids.ts";
import { type OwnDatabase, startOwnDatabase } from "../support/database.ts";
import { DeployedProcess } from "../support/deployed-process.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { freePorts } from "../support/free-port.ts";
import { RedisServer } from "../support/redis-server.ts";
import { type Answer, type Rest, restClient } from "../support/rest.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";
import { type HoldPoint, StatementProxy } from "../support/statement-proxy.ts";

const token = "a token of the tests alone";
const ids = createIds(systemClock);
const accountId = ids.next("acc");

let database: OwnDatabase;
let redis: RedisServer;
let proxy: StatementProxy;
let control: DeployedProcess;
/** The gateway that is killed, whose statements pass through the proxy, and the gateway that receives retries. */
let doomed: DeployedProcess;
let survivor: DeployedProcess;
let worker: FakeWorker;
let toDoomed: Rest;
let toSurvivor: Rest;

beforeAll(async () => {
  [database, redis] = await Promise.all([startOwnDatabase(), RedisServer.start()]);
  const socket = join(database.socketDirectory, ".s.PGSQL.5432");
  // All statements of a create contain its account or the new id. Heartbeats are sent at any time.
  proxy = await StatementProxy.start(
    socket,
    new RegExp(`${accountId}|ses_`),
    /^(idempotency-beat|update idempotency_keys k)/,
  );
  const controlPorts = await freePorts("INTERNAL_PORT", "FLEET_PORT");
  const survivorPorts = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const doomedPorts = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  control = processOf(controlPorts, database.url, { ROLE: "control" });
  survivor = processOf(survivorPorts, database.url);
  doomed = processOf(doomedPorts, `postgres://postgres@127.0.0.1:${proxy.port}/postgres`, { ROLE: "api" });
  await Promise.all([control.start(), survivor.start(), doomed.start()]);
  worker = new FakeWorker({ control: `127.0.0.1:${controlPorts.FLEET_PORT}`, token, slots: 100 });
  await worker.start();
  const { token: key } = await database.db.transaction(async (tx) => {
    await insertAccount(tx, { id: accountId, name: "Doomed", tier: "enterprise" });
    return createKey(tx, ids, { accountId, name: "test" });
  });
  toDoomed = restClient({ url: `http://127.0.0.1:${doomedPorts.PORT}`, key });
  toSurvivor = restClient({ url: `http://127.0.0.1:${survivorPorts.PORT}`, key });
});

afterAll(async () => {
  worker?.die();
  await Promise.all([doomed?.stop(), survivor?.stop(), control?.stop()]);
  await proxy?.[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
  await rm(database.directory, { recursive: true, force: true });
});

function processOf(ports: Record<string, number>, url: string, more: Record<string, string> = {}): DeployedProcess {
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const env = { HOST: "127.0.0.1", DATA_DIR: join(database.directory, "gateways"), WORKER_TOKEN: token, ...variables };
  const program = "gateway/main.ts";
  const shared = { DATABASE_URL: url, REDIS_URL: redis.url, SECRETS_KEYS: testSecretsKeys, SIGNUP: "closed" };
  return new DeployedProcess({
    program,
    env: { ...env, ...shared, ...more },
    internalPort: Number(ports.INTERNAL_PORT),
  });
}

/** Kind of resource. Each idempotency key creates a distinguishable resource. */
interface Kind {
  readonly path: string;
  body(key: string): object;
}

const kinds = {
  session: { path: "/v1/sessions", body: (key) => ({ labels: { key } }) },
  profile: { path: "/v1/profiles", body: (key) => ({ name: key, labels: { key } }) },
} satisfies Record<string, Kind>;

const send = (to: Rest, { path, body }: Kind, key: string): Promise<Answer> =>
  to(path, body(key), { headers: { "idempotency-key": key }, signal: AbortSignal.timeout(60_000) });

/** Returns the ids of all resources that a key has created, whatever their state. */
async function madeBy({ path }: Kind, key: string): Promise<string[]> {
  const { body } = await toSurvivor(`${path}?limit=100`);
  const made: { id: string; labels: Record<string, string> }[] = body.data;
  return made.filter(({ labels }) => labels.key === key).map(({ id }) => id);
}

/** Kills the gateway when a create reaches a point. Returns false if the create was answered first. */
async function killAt(kind: Kind, key: string, point: HoldPoint): Promise<boolean> {
  const held = proxy.hold(point);
  const answer = send(toDoomed, kind, key).then(
    () => "answered",
    () => "broken",
  );
  const first = await Promise.race([held, answer]);
  if (first === "answered") return false;
  await doomed.kill();
  expect(await answer).toBe("broken");
  return true;
}

/** Returns the points at which a request can be interrupted: before each statement, and after the commit. */
function pointsOf(statements: readonly string[]): HoldPoint[] {
  return [
    ...statements.map((_, index) => ({ statement: index + 1, when: "before" as const })),
    { statement: statements.length, when: "after" },
  ];
}

/** Breaks the connections to PostgreSQL when a create reaches a point. Returns the response. */
async function breakOffAt(kind: Kind, key: string, point: HoldPoint): Promise<Answer> {
  const held = proxy.hold(point);
  const answer = send(toDoomed, kind, key);
  await held;
  proxy.breakOff();
  return answer;
}

test.each(Object.entries(kinds))(
  "a key creates one %s, whenever its gateway is killed",
  { timeout: 300_000 },
  async (name, kind) => {
    proxy.hold();
    expect((await send(toDoomed, kind, `${name} undisturbed`)).status).toBe(201);
    const statements = [...proxy.seen];
    expect(statements.length, statements.join("\n")).toBeGreaterThanOrEqual(6);
    const retries: Promise<[string, HoldPoint, Answer]>[] = [];
    for (const point of pointsOf(statements)) {
      const key = `${name} ${point.when} ${point.statement}`;
      expect(await killAt(kind, key, point), key).toBe(true);
      retries.push(send(toSurvivor, kind, key).then((answer) => [key, point, answer]));
      await doomed.start();
    }
    for (const [key, point, { status, body }] of await Promise.all(retries)) {
      const at = `${key}: ${statements[point.statement - 1]}`;
      expect([status, await madeBy(kind, key)], at).toEqual([201, [body.id]]);
      const again = await send(toDoomed, kind, key);
      expect([again.headers.get("idempotency-replayed"), again.body], at).toEqual(["true", body]);
    }
  },
);

/** Status, slug, Retry-After, and whether the response is replayed. */
const summaryOf = ({ status, headers, body }: Answer) => [
  status,
  body.type?.split("/").at(-1),
  headers.get("retry-after"),
  headers.get("idempotency-replayed"),
];
const away = [500, "internal", "1", null];

test.each(Object.entries(kinds))(
  "a key creates one %s, whenever PostgreSQL disconnects",
  { timeout: 300_000 },
  async (name, kind) => {
    proxy.hold();
    expect((await send(toDoomed, kind, `${name} without a break`)).status).toBe(201);
    for (const point of pointsOf(proxy.seen)) {
      const key = `${name} broken off ${point.when} ${point.statement}`;
      expect(summaryOf(await breakOffAt(kind, key, point)), key).toEqual(away);
      const { status, body } = await send(toDoomed, kind, key);
      expect([status, await madeBy(kind, key)], key).toEqual([201, [body.id]]);
    }
  },
);

test("a stored response is replayed once PostgreSQL is back, without side effects before", {
  timeout: 60_000,
}, async () => {
  const kind = kinds.profile;
  const key = "kept through a break";
  const first = await send(toDoomed, kind, key);
  proxy.hold();
  const replay = await send(toDoomed, kind, key);
  const points = pointsOf(proxy.seen);
  expect([replay.headers.get("idempotency-replayed"), points.length]).toEqual(["true", 3]);
  for (const point of points) {
    expect(summaryOf(await breakOffAt(kind, key, point)), JSON.stringify(point)).toEqual(away);
    const { status, headers, body } = await send(toDoomed, kind, key);
    expect([status, headers.get("idempotency-replayed"), body]).toEqual([201, "true", first.body]);
  }
  expect(await madeBy(kind, key)).toEqual([first.body.id]);
});

/** Requests whose transactions lock workers, sessions or accounts. */
const locking: Readonly<Record<string, (about: string) => Promise<Answer>>> = {
  "a create": () => toDoomed("/v1/sessions", {}),
  "a destroy": (session) => toDoomed(`/v1/sessions/${session}`, undefined, { method: "DELETE" }),
  "a create of a profile": (session) => toDoomed("/v1/profiles", { name: session }),
  "a create of an agent": (session) => toDoomed("/v1/agent-sessions", { session_id: session }),
};
const locks = /for (no key )?(update|share)\b|^update "?(sessions|accounts|workers)\b/;

test.each(Object.entries(locking))(
  "a gateway that is stopped during %s costs no lease, whatever it has locked",
  { timeout: 300_000 },
  async (_, act) => {
    const create = async () => (await toSurvivor("/v1/sessions", {})).body.id;
    for (let statement = 1; ; statement += 1) {
      const [kept, other] = [await create(), await create()];
      const held = proxy.hold({ statement, when: "after", among: locks }).then(() => "held");
      const answer = act(other).then(
        () => "answered",
        () => "broken",
      );
      if ((await Promise.race([held, answer])) === "answered") {
        expect(statement, proxy.seen.join("\n")).toBeGreaterThan(1);
        return;
      }
      process.kill(doomed.pid ?? 0, "SIGSTOP");
      try {
        // Longer than a lease of 8 s and a sweep.
        await beatUntil(Date.now() + 10_000);
        const { body } = await toSurvivor(`/v1/sessions/${kept}`);
        expect([body.status, body.ended_reason], proxy.seen.at(-1)).toEqual(["live", null]);
      } finally {
        process.kill(doomed.pid ?? 0, "SIGCONT");
      }
      proxy.breakOff();
      await answer;
    }
  },
);

/** Waits until the worker's lease is renewed after a time. */
async function beatUntil(moment: number): Promise<void> {
  const receivedAt = async (): Promise<number> => {
    const lease = await database.db.sql.selectFrom("worker_leases").select("heard_at").executeTakeFirstOrThrow();
    return lease.heard_at?.getTime() ?? 0;
  };
  await expect.poll(receivedAt, { timeout: 30_000, interval: 250 }).toBeGreaterThan(moment);
}
