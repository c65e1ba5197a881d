import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { publishRevision } from "../../../src/legal/publish.ts";
import { FakeWorker } from "../../support/fake-worker.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";
import type { TransportName } from "../../support/transport-calls.ts";
import { forTransport, requestTo, type WalkedMethod, walkedMethods } from "./methods.ts";
import { unlogged, type WriteScene, writes } from "./writes.ts";

const workerToken = "a token of the tests alone";
const day = 86_400_000;

let gateway: PeopleGateway;
let worker: FakeWorker;
let scene: WriteScene;

const methodNamed = (name: string) => {
  const method = walkedMethods.find((each) => each.name === name);
  if (!method) throw new Error(`the registry has no method ${name}`);
  return method;
};

let requests = 0;
const nextRequestId = (): string => {
  requests += 1;
  return `walk-${requests}`;
};

/** Makes writes over each protocol and compares their audit entries. */
export function walkAudit(methodsOf: (transport: TransportName) => readonly WalkedMethod[]): void {
  beforeAll(async () => {
    gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
    worker = new FakeWorker({
      control: `unix:${gateway.app.config.dataDir}/fleet.sock`,
      token: workerToken,
      slots: 90,
    });
    await worker.start();
    const { app, url, mailbox, now } = gateway;
    let published = 0;
    scene = {
      url,
      mailbox,
      now,
      key: app.developerKey ?? "",
      async publishTerms() {
        published += 1;
        const [id, publishedAt] = [`revision ${published}`, new Date(now())];
        const revision = { id, url: "https://example.com/terms", publishedAt, effectiveAt: new Date(now() + 14 * day) };
        await app.db.transaction((tx) => publishRevision(tx, revision));
        return id;
      },
    };
  }, 60_000);
  afterAll(async () => {
    worker?.die();
    await gateway?.[Symbol.asyncDispose]();
  });

  // gRPC on PORT is Connect's handler with another encoding.
  describe.each<TransportName>(["REST", "Connect", "gRPC on GRPC_PORT"])("over %s", (transport) => {
    // An account may send 20 invites a day.
    beforeAll(() => gateway.pass(day));

    const names = new Set(methodsOf(transport).map(({ name }) => name));

    test.each(Object.entries(writes).filter(([name]) => names.has(name)))(
      "%s leaves exactly one entry in the audit log",
      async (name, prepare) => {
        const { request, token, action, log } = await prepare(scene);
        const { served } = methodNamed(name);
        const requestId = nextRequestId();
        const from = "203.0.113.7";
        const shown = { token, requestId, from, userAgent: "walker/1" };
        const outcome = await gateway.call(
          transport,
          served.method,
          forTransport(transport, served.method, request),
          shown,
        );
        expect(outcome).toMatchObject({ slug: "" });
        const { data } = (await (await log())("/v1/account/audit-log?limit=20")).body;
        expect(data.filter((entry: { request_id: string }) => entry.request_id === requestId)).toEqual([
          expect.objectContaining({
            action,
            ip_address: from,
            user_agent: "walker/1",
            actor: {
              type: expect.stringMatching(/^(user|api_key)$/),
              id: expect.any(String),
              name: expect.any(String),
            },
            subject_id: expect.stringMatching(/./),
          }),
        ]);
      },
    );

    test("page actions and refused calls leave no entry", async () => {
      const rest = restClient(scene);
      const { id } = (await rest("/v1/sessions", {})).body;
      const agent = (await rest("/v1/agent-sessions", {})).body;
      const requestIds = new Set<string>();
      for (const method of walkedMethods.filter(({ served }) => !served.rules.public)) {
        const isDone = unlogged.includes(method.name);
        const requestId = nextRequestId();
        requestIds.add(requestId);
        const request = requestTo(
          method,
          transport,
          isDone ? { SessionService: id, AgentInputService: agent.id } : undefined,
        );
        const isAtAdmission = transport === "REST" ? method.served.route : method.served.kind === "unary";
        if (!isAtAdmission || !(isDone || method.variables.length > 0)) continue;
        const { slug } = await gateway.call(transport, method.served.method, request, { token: scene.key, requestId });
        expect([method.name, slug === ""]).toEqual([method.name, isDone]);
      }
      const { data } = (await rest("/v1/account/audit-log?limit=100")).body;
      expect(data.filter((entry: { request_id: string }) => requestIds.has(entry.request_id))).toEqual([]);
    });
  });
}
