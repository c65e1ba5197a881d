import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { CdpResponseSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { BareClient } from "../support/cdp-proxy-scene.ts";
import { moveTime } from "../support/move-time.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

/** Steps of a connection at which the fake worker can wait. */
type Step = "create" | "proxyCdp";

let gateway: TestGateway;
let key: string;
/** Called by the fake worker at a step, which it awaits. */
let atStep: (step: Step) => Promise<void> = async () => undefined;
beforeAll(async () => {
  gateway = await startTestGateway();
  const worker = await gateway.running.worker({
    handlers: {
      async create(_call, { context }) {
        worker.held.set(context?.sessionId ?? "", context?.placementEpoch ?? 0n);
        await atStep("create");
        return create(EmptySchema);
      },
      async *proxyCdp(_call, requests) {
        await atStep("proxyCdp");
        yield create(CdpResponseSchema, {});
        for await (const { data, last } of requests)
          if (data.length > 0) yield create(CdpResponseSchema, { data, last });
      },
    },
  });
  key = await gateway.addAccount();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Returns the path and query of a WebSocket address with a new ticket. */
async function ask(query = ""): Promise<string> {
  const { body } = await gateway.as(key)(`/connect/json/version${query}`);
  const { pathname, search } = new URL(body.webSocketDebuggerUrl);
  return pathname + search;
}

async function connect(path: string): Promise<BareClient> {
  const client = await BareClient.connect(gateway.url + path);
  onTestFinished(() => client[Symbol.dispose]());
  return client;
}

/** Returns the type of the problem with which the service refuses a ticket. */
async function refusalOf(path: string): Promise<string> {
  const response = await fetch(gateway.url + path.replace("?", "/json/version?"));
  return JSON.parse(await response.text()).type;
}

/** Returns whether the connection relays messages. The fake worker echoes them. */
const isOpen = async (client: BareClient): Promise<boolean> => (await client.send("Echo.me")).method === "Echo.me";

test("a ticket opens one connection within 60 s, which continues after that", async () => {
  const [first, second] = [await ask("?label=a:b"), await ask("?label=a:b")];
  expect(first).toMatch(/^\/connect\/pht_\w+\?label=a%3Ab$/);
  expect(first).not.toBe(second);
  gateway.running.pass(30_000);
  const client = await connect(first);
  expect(await isOpen(client)).toBe(true);
  await expect(connect(first)).rejects.toThrow("401");
  gateway.running.pass(31_000);
  expect(await refusalOf(second)).toContain("/expired-key");
  await expect(connect(second)).rejects.toThrow("401");
  gateway.running.pass(60_000);
  expect(await isOpen(client)).toBe(true);
});

test("one of two connections with a ticket at once is refused", async () => {
  const path = await ask();
  const opened = await Promise.allSettled([connect(path), connect(path)]);
  expect(opened.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});

test.each<Step>(["create", "proxyCdp"])("a client that leaves before the end of %s leaves no session", async (step) => {
  const key = await gateway.addAccount();
  const [reached, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  atStep = async (now) => {
    if (now !== step) return;
    reached.resolve();
    await left.promise;
  };
  onTestFinished(() => {
    atStep = async () => undefined;
  });
  const socket = new WebSocket(`${gateway.url}/connect/${key}`);
  socket.on("error", () => undefined);
  await reached.promise;
  socket.terminate();
  left.resolve();
  await expect.poll(async () => (await gateway.as(key)("/v1/sessions")).body.data[0]?.ended_reason).toBe("destroyed");
});

test("a client at the limit of sessions waits 10 s for the end of a session", async () => {
  const { app, pass } = gateway.running;
  const free = await gateway.addAccount({ tier: "free" });
  const sleeps = vi.spyOn(app.clock, "sleep");
  onTestFinished(() => sleeps.mockRestore());
  /** Connects, and waits until the connection waits for a slot. */
  const begin = async () => {
    sleeps.mockClear();
    const outcome = vi.fn();
    const connected = connect(`/connect/${free}`).then((client) => client.sessionId, String);
    void connected.then(outcome);
    const isWaiting = () => sleeps.mock.calls.some(([pause]) => pause > 9_000 && pause <= 10_000);
    await expect.poll(isWaiting, { timeout: 20_000 }).toBe(true);
    return { connected, outcome };
  };
  const first = await connect(`/connect/${free}`);
  const refused = await begin();
  pass(4_000);
  await gateway.as(free)("/v1/sessions");
  expect(refused.outcome).not.toHaveBeenCalled();
  pass(7_000);
  expect(await refused.connected).toContain("/concurrency-limit");

  const served = await begin();
  pass(4_000);
  expect(await gateway.as(free)(`/v1/sessions/${first.sessionId}`, undefined, { method: "DELETE" })).toMatchObject({
    status: 204,
  });
  expect(await served.connected).toMatch(/^ses_/);
});

test("deletes unused tickets after some minutes, and used ones after a day", async () => {
  const { app, pass } = gateway.running;
  const minute = 60_000;
  const hour = 60 * minute;
  await connect(await ask());
  await ask();
  await moveTime(app.db, 15 * minute);
  await ask();
  const left = async (moved: number) => {
    await moveTime(app.db, moved);
    pass(0);
    return app.db.sql.selectFrom("connect_tickets").select("used_at").execute();
  };
  const unused = async (moved: number) => (await left(moved)).filter((row) => !row.used_at).length;
  await expect.poll(() => unused(20 * minute)).toBe(1);
  await expect.poll(() => unused(24 * hour)).toBe(0);
  expect((await left(24 * hour)).length).toBeGreaterThan(0);
  await expect.poll(() => left(26 * hour)).toEqual([]);
});
