import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { forwardEvents } from "../../tools/listen/forward-events.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { closeAfterTest, listen, startReceiver } from "./receiver.ts";
import { causeEvent } from "./scene.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

const startListening = (env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
  startProgram("tools/listen.ts", env, ...args);

function startProgram(path: string, env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const program = spawn(process.execPath, ["--no-warnings", path, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  closeAfterTest(() => program.kill("SIGKILL"));
  return program;
}

/** Proxy to the service whose connections can be cut. */
async function openWay(): Promise<{ url: string; cut(): void; mend(): void }> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const port = await listen(
    createServer((client) => {
      const service = isCut ? undefined : connect(Number(new URL(gateway.url).port), "127.0.0.1");
      for (const socket of [client, service]) {
        if (!socket) continue;
        sockets.add(socket);
        socket.on("error", () => undefined).once("close", () => void sockets.delete(socket));
      }
      if (service) client.pipe(service).pipe(client);
      else client.destroy();
    }),
  );
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  closeAfterTest(destroyAll);
  return {
    url: `http://127.0.0.1:${port}`,
    cut() {
      isCut = true;
      destroyAll();
    },
    mend() {
      isCut = false;
    },
  };
}

test("forwards signed events once and in order, including those during a lost connection", async () => {
  const key = await gateway.addAccount();
  const rest = gateway.as(key);
  await causeEvent(rest);
  const { port, received } = await startReceiver();
  const way = await openWay();
  const env = { PILOTHOUSE_URL: way.url, PILOTHOUSE_KEY: key };
  const program = startListening(env, "--forward", `http://127.0.0.1:${port}/hooks`);
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  async function nextLine(): Promise<string> {
    const { done, value } = await lines.next();
    if (done) throw new Error("the program has ended");
    return value;
  }
  const secret = /whsec_\S{32}/.exec(await nextLine())?.[0] ?? "";
  expect(await nextLine()).toBe("Listening");
  const subjects = [await causeEvent(rest), await causeEvent(rest)];
  for (const _ of subjects) expect(await nextLine()).toMatch(/^api_key\.revoked evt_\w{26}: 200 after \d+ ms$/);
  way.cut();
  expect(await nextLine()).toMatch(/^No connection/);
  subjects.push(await causeEvent(rest));
  way.mend();
  let line = "";
  while (!line.startsWith("api_key.revoked")) line = await nextLine();
  expect(received.map(({ body }) => JSON.parse(body).data.api_key_id)).toEqual(subjects);
  for (const { headers, body } of received) {
    const strings = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    expect(new Webhook(secret).verify(body, strings)).toMatchObject({ id: headers["x-service-event-id"] });
  }
  const shown = await rest("/v1/events");
  expect(received.map(({ body }) => JSON.parse(body))).toEqual(shown.body.data.slice(0, 3).reverse());
  program.kill("SIGTERM");
  expect(await once(program, "exit")).toEqual([0, null]);
});

test("abandons a silent connection and continues after its last event", async () => {
  const id = "evt_01jd2z5r1v7k9m3q8t4w6x0y2b";
  const resumedFrom: unknown[] = [];
  const silent = http.createServer(({ url, headers }, response) => {
    if (url === "/v1/events?limit=1") return void response.end('{"data":[]}');
    resumedFrom.push(headers["last-event-id"]);
    const data = JSON.stringify({ id, type: "api_key.revoked", created_at: "2026-11-22T10:00:00.000Z", data: {} });
    response
      .writeHead(200)
      .write(headers["last-event-id"] ? ":\n\n" : `id: ${id}\nevent: api_key.revoked\ndata: ${data}\n\n`);
  });
  const [port, { port: to, received }] = [await listen(silent), await startReceiver()];
  const ending = new AbortController();
  const forward = new URL(`http://127.0.0.1:${to}/`);
  const service = `http://127.0.0.1:${port}`;
  const forwarding = { service, key: "key", forward, secret: `whsec_${"A".repeat(32)}`, print: () => undefined };
  const done = forwardEvents({ ...forwarding, silenceMs: 1_000 }, ending.signal);
  await expect.poll(() => resumedFrom, { timeout: 20_000 }).toContain(id);
  expect(received.length).toBeGreaterThan(0);
  ending.abort(new Error("enough"));
  await expect(done).rejects.toThrow("enough");
  silent.closeAllConnections();
});

test.each([
  [["--forward", "nonsense"], {}, "--forward accepts an address"],
  [["--forward", "http://127.0.0.1:3000/"], { PILOTHOUSE_KEY: "" }, "PILOTHOUSE_KEY is needed"],
  [["--forward", "http://127.0.0.1:3000/"], { PILOTHOUSE_KEY: "wrong" }, "answered 401"],
])("refuses %j with %j in one sentence", async (args, env, sentence) => {
  const program = startListening({ PILOTHOUSE_URL: gateway.url, ...env }, ...args);
  await expectRefusal(program, sentence);
});

/** Expects that a program prints one line with the reason and exits with 1. */
async function expectRefusal(program: ReturnType<typeof startProgram>, sentence: string): Promise<void> {
  const printed = Promise.all([text(program.stdout), text(program.stderr)]);
  const [[output, complaint], [code]] = await Promise.all([printed, once(program, "exit")]);
  expect([output, complaint, code]).toEqual(["", expect.stringContaining(sentence), 1]);
  expect(complaint.trimEnd().split("\n")).toHaveLength(1);
}

test("reports an unreachable service with its address and a remedy, and keeps retrying", async () => {
  const way = await openWay();
  way.cut();
  const program = startListening(
    { PILOTHOUSE_URL: way.url, PILOTHOUSE_KEY: "key" },
    "--forward",
    "http://127.0.0.1:3000/",
  );
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]();
  const sentence = /^No connection \(http:\S+ cannot be reached \(\w+\): start the service with `npm start`, or set /;
  for (let attempt = 0; attempt < 2; attempt += 1) expect((await lines.next()).value).toMatch(sentence);
});

test.each([
  [{ PILOTHOUSE_KEY: "" }, "PILOTHOUSE_KEY is needed, the API key of an account"],
  [{ PILOTHOUSE_KEY: "wrong" }, "/v1/agent-sessions answered 401: "],
  [
    { PILOTHOUSE_KEY: "key", PILOTHOUSE_URL: "http://127.0.0.1:10" },
    "http://127.0.0.1:10 cannot be reached (ECONNREFUSED): start the service with `npm start`, or set PILOTHOUSE_URL",
  ],
])("npm run agent refuses %j in one sentence", async (env, sentence) => {
  await expectRefusal(startProgram("tools/agent.ts", { PILOTHOUSE_URL: gateway.url, ...env }, "Look."), sentence);
});
