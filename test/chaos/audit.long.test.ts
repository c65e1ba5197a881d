import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { text as streamText } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { publishRevision } from "../../src/legal/publish.ts";
import { type Database, openDatabase } from "../../src/platform/postgres/database.ts";
import { forTransport, walkedMethods } from "../gateway/walk/methods.ts";
import { type WriteScene, writes } from "../gateway/walk/writes.ts";
import { silentLog } from "../support/database.ts";
import { DeployedProcess } from "../support/deployed-process.ts";
import { Deployment } from "../support/deployment.ts";
import { freePorts } from "../support/free-port.ts";
import { type Mailbox, startMailbox } from "../support/mailbox.ts";
import { type ProcessorServer, processorEnv, startProcessorServer } from "../support/processor-server.ts";
import { restClient } from "../support/rest.ts";
import { StatementProxy } from "../support/statement-proxy.ts";
import { createTransportCall, type TransportCall } from "../support/transport-calls.ts";

const fortnight = 14 * 86_400_000;

let mailbox: Mailbox;
let processor: ProcessorServer;
let deployment: Deployment;
let database: Database;
let proxy: StatementProxy;
/** The gateway that is killed. Its statements pass through the proxy. */
let doomed: DeployedProcess;
let doomedUrl: string;
let callDoomed: TransportCall;
let callSurvivor: TransportCall;
/** Calls the gateway that survives. */
let scene: WriteScene;

beforeAll(async () => {
  mailbox = await startMailbox();
  processor = await startProcessorServer(Date.now);
  const gatewayEnv = {
    SMTP_URL: mailbox.url,
    MAIL_FROM: "Pilothouse <mail@example.com>",
    TRUSTED_PROXIES: "127.0.0.1",
    SECRETS_KEYS: `test:${randomBytes(32).toString("base64")}`,
    SIGNUP: "open",
    ...processorEnv(processor),
  };
  deployment = await Deployment.start({ gateways: [{}], workers: 0, gatewayEnv });
  await deployment.fakeWorker(0, { slots: 100 });
  database = openDatabase({ url: deployment.postgres.url }, silentLog);
  const socket = join(deployment.dataDir, "postgres", "run", ".s.PGSQL.5432");
  proxy = await StatementProxy.start(socket, /^/, /^$/);
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  doomed = new DeployedProcess({
    program: "gateway/main.ts",
    env: {
      ...deployment.sharedEnv,
      ...gatewayEnv,
      HOST: "127.0.0.1",
      ROLE: "api",
      ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)])),
      DATA_DIR: join(deployment.dataDir, "doomed"),
      DATABASE_URL: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`,
    },
    internalPort: ports.INTERNAL_PORT,
  });
  doomedUrl = `http://127.0.0.1:${ports.PORT}`;
  callDoomed = createTransportCall({ url: doomedUrl, grpcAddress: `127.0.0.1:${ports.GRPC_PORT}` });
  const { url, grpcAddress } = deployment.gateway(0);
  processor.deliver = async ({ processor: name, headers, body }) => {
    const init = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body };
    expect((await fetch(`${url}/processors/${name}`, init)).status).toBe(200);
  };
  callSurvivor = createTransportCall({ url, grpcAddress });
  let published = 0;
  scene = {
    url,
    mailbox,
    key: deployment.key,
    now: Date.now,
    async publishTerms() {
      published += 1;
      const [id, now] = [`revision ${published}`, Date.now()];
      const revision = {
        id,
        url: "https://example.com/terms",
        publishedAt: new Date(now),
        effectiveAt: new Date(now + fortnight),
      };
      await database.transaction((tx) => publishRevision(tx, revision));
      return id;
    },
  };
}, 120_000);
beforeEach(() => doomed.start(), 60_000);
afterEach(() => doomed.kill());
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  await database?.close();
  await deployment?.[Symbol.asyncDispose]();
  await processor?.[Symbol.asyncDispose]();
  await mailbox?.[Symbol.asyncDispose]();
}, 60_000);

/** Tables of attempts, of idempotency keys, and of a processor's ids for accounts and prices. */
const ownTables = /^\s*(insert into|update|delete from) "?(throttles|idempotency_keys|card_customers|card_prices)\b/i;

/** Returns the statements outside of transactions that change other tables. */
function changesOutside(statements: readonly string[]): string[] {
  let isInside = false;
  return statements.filter((text) => {
    if (/^(begin|commit)/i.test(text)) isInside = /^begin/i.test(text);
    return !isInside && /^\s*(insert|update|delete)/i.test(text) && !ownTables.test(text);
  });
}

/** The write removes the caller, to whom the stored response is then not replayed. */
const endsCaller = (name: string): boolean => name === "TeamService.Leave";
const timeout = 90_000;

test.each(Object.entries(writes))(
  "%s has one entry when its gateway is killed right after the commit",
  {
    timeout,
  },
  async (name, prepare) => {
    const { request, token, action, log } = await prepare(scene);
    const served = walkedMethods.find((method) => method.name === name)?.served;
    if (!served) throw new Error(`the registry has no method ${name}`);
    const { method, keepsAnswers } = served;
    const requestIds = [`${name}-cut-off`, `${name}-again`] as const;
    const headersOf = (requestId: string) => ({
      "x-request-id": requestId,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(keepsAnswers && { "idempotency-key": name }),
    });
    const sent = forTransport("REST", method, request);
    const held = proxy.hold({ statement: 1, when: "after", among: /^commit/i });
    const answer = callDoomed("REST", method, sent, headersOf(requestIds[0])).then(
      ({ slug }) => `answered ${slug}`,
      () => "broken",
    );
    expect(await Promise.race([held, answer])).toBeUndefined();
    await doomed.kill();
    expect([await answer, changesOutside(proxy.seen)]).toEqual(["broken", []]);
    const rest = await log();
    const entries = async (): Promise<{ request_id: string }[]> => {
      const { data } = (await rest(`/v1/account/audit-log?limit=20&action=${action}`)).body;
      return data.filter((entry: { request_id: string }) => requestIds.some((id) => id === entry.request_id));
    };
    // PostgreSQL executes the received commit asynchronously.
    await expect.poll(entries, { timeout: 10_000 }).toMatchObject([{ action, request_id: requestIds[0] }]);
    if (!keepsAnswers) return;
    const { slug } = await callSurvivor("REST", method, sent, headersOf(requestIds[1]));
    expect([slug, await entries()]).toMatchObject([endsCaller(name) ? "revoked-key" : "", [{ action }]]);
  },
);

test.each([
  ["HTTP/1.1", []],
  ["HTTP/2", ["--http2-prior-knowledge"]],
])("an export over %s whose gateway is killed midway fails in curl", { timeout }, async (_, options) => {
  const entries = 600;
  const rest = restClient(scene);
  const { id } = (await rest("/v1/profiles", { name: "Shop" })).body;
  for (let made = 0; made < entries; made += 1)
    await rest(`/v1/profiles/${id}`, { description: `${made}` }, { method: "PATCH" });
  const path = `/v1/account/audit-log/export?format=jsonl&subject_id=${id}`;
  const download = () => {
    const sent = ["--silent", ...options, "--header", `authorization: Bearer ${scene.key}`, `${doomedUrl}${path}`];
    return spawn("curl", sent, { stdio: ["ignore", "pipe", "inherit"] });
  };
  const whole = download();
  const [text, [code]] = await Promise.all([streamText(whole.stdout), once(whole, "close")]);
  expect([text.trimEnd().split("\n").length, code]).toEqual([entries + 1, 0]);

  // The first two pages have been sent by then.
  const held = proxy.hold({ statement: 3, when: "before", among: /"audit_entries".*"id" > / });
  const broken = download();
  const read = streamText(broken.stdout);
  await held;
  await doomed.kill();
  const [exit] = await once(broken, "close");
  expect(exit).toBeGreaterThan(0);
  expect((await read).split("\n").length).toBeLessThan(entries);
});
