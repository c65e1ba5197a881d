import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sandboxStore } from "../../src/billing/sandbox/btcpay-invoices.ts";
import { sandboxKey } from "../../src/billing/sandbox/btcpay-routes.ts";
import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { LiveKitServer } from "../support/livekit-server.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { PostgresBetween } from "../support/postgres-between.ts";
import { type ProcessorServer, startProcessorServer } from "../support/processor-server.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";

/** Documented delays of a fault and of its end, in milliseconds. */
const [worseWithin, betterWithin] = [30_000, 60_000];
const workerToken = "a token of the tests alone";

let database: TestDatabase;
let between: PostgresBetween;
let liveKit: LiveKitServer;
let processor: ProcessorServer;
let gateway: PeopleGateway;
let worker: FakeWorker;

async function startWorker(): Promise<void> {
  worker = new FakeWorker({ control: `127.0.0.1:${gateway.app.fleet?.port}`, token: workerToken });
  await worker.start();
}

/** Health of the components that are not operational. */
async function amiss(): Promise<Record<string, string>> {
  const { components } = await (await fetch(`${gateway.url}/v1/status`)).json();
  const those = components.filter(({ status }: { status: string }) => status !== "operational");
  return Object.fromEntries(those.map(({ name, status }: { name: string; status: string }) => [name, status]));
}

beforeAll(async () => {
  [database, liveKit, processor] = await Promise.all([
    startTestDatabase(),
    LiveKitServer.start(),
    startProcessorServer(Date.now),
  ]);
  between = await PostgresBetween.start(database);
  const { url, secret } = processor;
  gateway = await startPeopleGateway({
    DATABASE_URL: between.url,
    SECRETS_KEYS: testSecretsKeys,
    HOST: "127.0.0.1",
    WORKER_TOKEN: workerToken,
    ...liveKit.env,
    STRIPE_URL: url,
    STRIPE_SECRET_KEY: "sk_test_of_the_tests_alone",
    STRIPE_WEBHOOK_SECRET: secret,
    BTCPAY_URL: url,
    BTCPAY_STORE: sandboxStore,
    BTCPAY_API_KEY: sandboxKey,
    BTCPAY_WEBHOOK_SECRET: secret,
  });
  await startWorker();
  const isWell = async () => Object.keys(await amiss()).length === 0;
  expect(await waitUntil(isWell, { timeout: betterWithin, every: 100 })).toBe(true);
}, 1_500_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
  await processor?.[Symbol.asyncDispose]();
  await liveKit?.[Symbol.asyncDispose]();
  await between?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
}, 60_000);

/** A fault, and the resulting health of components; `begin` returns a function that ends it. */
interface Fault {
  readonly what: string;
  readonly shows: Readonly<Record<string, string>>;
  begin(): Promise<() => unknown>;
}

const faults: readonly Fault[] = [
  {
    what: "a PostgreSQL outage",
    shows: { api: "major_outage", sessions: "major_outage", webhooks: "major_outage" },
    async begin() {
      between.isAway = true;
      return () => {
        between.isAway = false;
      };
    },
  },
  {
    what: "no worker",
    shows: { sessions: "major_outage" },
    async begin() {
      worker.die();
      return startWorker;
    },
  },
  {
    what: "a worker with failing launches",
    shows: { sessions: "major_outage" },
    async begin() {
      const beat = setInterval(() => worker.heartbeat({ launchesFail: true }).catch(() => undefined), 20);
      return () => clearInterval(beat);
    },
  },
  {
    what: "delayed deliveries",
    shows: { webhooks: "degraded" },
    async begin() {
      const queue = { kind: "webhook", queue: "whk_none", owner: "acc_none" };
      const due = new Date(Date.now() + 2_000);
      await database.db.sql
        .insertInto("job_queues")
        .values({ ...queue, due_at: due, latest_at: due })
        .execute();
      // Workers skip locked rows.
      const holder = new pg.Client({ connectionString: database.url });
      await holder.connect();
      await holder.query("begin");
      await holder.query("select from job_queues where queue = $1 for update", [queue.queue]);
      // Deliveries count as delayed when this one is 6 s late.
      await sleep(due.getTime() + 6_000 - Date.now());
      return () => holder.end();
    },
  },
  {
    what: "a LiveKit outage",
    shows: { live_view: "degraded" },
    async begin() {
      await liveKit.kill();
      return () => liveKit.restart();
    },
  },
  {
    what: "hung payment processors",
    shows: { billing: "major_outage" },
    begin: async () => hang(/^/),
  },
  {
    what: "one hung processor of two",
    shows: { billing: "partial_outage" },
    begin: async () => hang(/^\/v1\//),
  },
];

/** Blocks the processor's responses at some paths, and returns a function that continues them. */
function hang(those: RegExp): () => void {
  const over = Promise.withResolvers<void>();
  processor.answer = async (path, body) => {
    if (those.test(path)) await over.promise;
    return body;
  };
  return () => {
    processor.answer = (_, body) => body;
    over.resolve();
  };
}

test.each(faults)(
  "$what: a fault is shown at its component within 30 s, and its end within 60 s",
  async (fault) => {
    const end = await fault.begin();
    try {
      await expect.poll(amiss, { timeout: worseWithin, interval: 100 }).toEqual(fault.shows);
    } finally {
      await end();
    }
    await expect.poll(amiss, { timeout: betterWithin, interval: 100 }).toEqual({});
  },
  120_000,
);
