import { afterAll, beforeAll, expect, test } from "vitest";
import { sandboxStore } from "../../src/billing/sandbox/btcpay-invoices.ts";
import { sandboxKey } from "../../src/billing/sandbox/btcpay-routes.ts";
import { sleep, waitUntil } from "../../src/platform/bounded-wait.ts";
import { openDatabase } from "../../src/platform/postgres/database.ts";
import { silentLog } from "../support/database.ts";
import { Deployment } from "../support/deployment.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { type ProcessorServer, startProcessorServer } from "../support/processor-server.ts";
import { type Endpoints, startEndpoints } from "../webhooks/scene.ts";

/** Duration of the load. */
const minutes = Number(process.env.STATUS_LOAD_MINUTES ?? 60);

let site: FixtureSite;
let processor: ProcessorServer;
let endpoints: Endpoints;
let deployment: Deployment;

beforeAll(async () => {
  [site, processor, endpoints] = await Promise.all([
    new FixtureSite().start(),
    startProcessorServer(Date.now),
    startEndpoints(),
  ]);
  const { url, secret } = processor;
  deployment = await Deployment.start({
    gateways: [{}, {}],
    workers: 1,
    slots: 4,
    workerEnv: { EGRESS_ALLOW: site.host, CLOSE_AT_CPU: "100", WARM_BROWSERS: "1" },
    gatewayEnv: {
      WEBHOOK_ALLOW: "127.0.0.1",
      STRIPE_URL: url,
      STRIPE_SECRET_KEY: "sk_test_of_the_tests_alone",
      STRIPE_WEBHOOK_SECRET: secret,
      BTCPAY_URL: url,
      BTCPAY_STORE: sandboxStore,
      BTCPAY_API_KEY: sandboxKey,
      BTCPAY_WEBHOOK_SECRET: secret,
    },
  });
}, 120_000);
afterAll(async () => {
  await deployment?.[Symbol.asyncDispose]();
  await Promise.all([site?.stop(), processor?.[Symbol.asyncDispose](), endpoints?.[Symbol.asyncDispose]()]);
}, 120_000);

/** An ordinary request of a customer. Returns its status code. */
type Piece = (turn: number) => Promise<number>;

const pieces: readonly Piece[] = [
  async (turn) => {
    const { rest } = deployment.gateway(turn % 2);
    const created = await rest("/v1/sessions", {});
    const session = `/v1/sessions/${created.body.id}`;
    await rest(`${session}/navigate`, { url: site.url("/plain.html") });
    await rest(`${session}/capture`, { kind: "screenshot" });
    await rest(session, undefined, { method: "DELETE" });
    return created.status;
  },
  async (turn) => (await deployment.gateway(turn % 2).rest("/v1/sessions?limit=20")).status,
  async (turn) => (await deployment.gateway(turn % 2).rest("/v1/billing")).status,
  // Client errors are no fault of the service.
  async (turn) => (await deployment.gateway(turn % 2).rest("/v1/sessions", { archetype: "none" })).status,
  async (turn) => (await deployment.gateway(turn % 2).rest("/v1/billing/checkout-session", { tier: "none" })).status,
];

test(
  `no component changes its status in ${minutes} minutes of ordinary load`,
  async () => {
    const { rest } = deployment.gateway(0);
    expect((await rest("/v1/webhooks", { url: endpoints.url("/load") })).status).toBe(201);
    // Sessions are measured after the worker's registration.
    const isWell = async () => {
      const { status, components } = (await rest("/v1/status")).body;
      return status === "operational" && components.some(({ name }: { name: string }) => name === "sessions");
    };
    expect(await waitUntil(isWell, { timeout: 60_000, every: 200 })).toBe(true);
    const begun = new Date();
    const over = performance.now() + minutes * 60_000;
    const answers = new Map<number, number>();
    await Promise.all(
      pieces.map(async (piece) => {
        for (let turn = 0; performance.now() < over; turn += 1) {
          const status = await piece(turn);
          answers.set(status, (answers.get(status) ?? 0) + 1);
          await sleep(1_000);
        }
      }),
    );
    const db = openDatabase({ url: deployment.postgres.url }, silentLog, 1);
    try {
      const spans = await db.sql.selectFrom("status_spans").selectAll().where("started_at", ">", begun).execute();
      expect(spans.map(({ component, health, started_at: at }) => [component, health, at])).toEqual([]);
      const incidents = await db.sql
        .selectFrom("status_incidents")
        .selectAll()
        .where("started_at", ">", begun)
        .execute();
      expect(incidents.map(({ title }) => title)).toEqual([]);
    } finally {
      await db.close();
    }
    expect(endpoints.arrivals.length).toBeGreaterThan(minutes * 5);
    console.log(`${minutes} minutes: ${[...answers].map(([status, count]) => `${count} times ${status}`).join(", ")}`);
  },
  minutes * 60_000 + 180_000,
);
