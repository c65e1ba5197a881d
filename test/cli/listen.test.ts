import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { closeAfterTest, listen, startReceiver } from "../webhooks/receiver.ts";
import { causeEvent } from "../webhooks/scene.ts";
import { startCli } from "./program.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Starts a program, and returns functions that read its next line of each stream. */
function startListening(url: string, key: string, forward: string) {
  const program = startCli(["listen", "--forward", forward], { PILOTHOUSE_URL: url, PILOTHOUSE_API_KEY: key });
  const reader = (stream: NodeJS.ReadableStream) => {
    const lines = createInterface(stream)[Symbol.asyncIterator]();
    return async () => {
      const { done, value } = await lines.next();
      if (done) throw new Error("the program has ended");
      return value;
    };
  };
  return { program, nextResult: reader(program.stdout), nextProgress: reader(program.stderr) };
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
  const forward = `http://127.0.0.1:${port}/hooks`;
  const { program, nextResult, nextProgress } = startListening(way.url, key, forward);
  const secret = /whsec_\S{32}/.exec(await nextProgress())?.[0] ?? "";
  // The stream may open after these events, but continues after the newest one before.
  const subjects = [await causeEvent(rest), await causeEvent(rest)];
  for (const _ of subjects)
    expect(JSON.parse(await nextResult())).toEqual({
      id: expect.stringMatching(/^evt_\w{26}$/),
      type: "api_key.revoked",
      answer: "200",
      ms: expect.any(Number),
    });
  way.cut();
  expect(await nextProgress()).toMatch(/; trying again in \d+ ms$/);
  subjects.push(await causeEvent(rest));
  way.mend();
  expect(JSON.parse(await nextResult())).toMatchObject({ type: "api_key.revoked", answer: "200" });
  expect(received.map(({ body }) => JSON.parse(body).data.api_key_id)).toEqual(subjects);
  for (const { headers, body } of received) {
    const strings = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    expect(new Webhook(secret).verify(body, strings)).toMatchObject({ id: headers["x-service-event-id"] });
  }
  const shown = await rest("/v1/events");
  expect(received.map(({ body }) => JSON.parse(body))).toEqual(shown.body.data.slice(0, 3).reverse());
  program.kill("SIGTERM");
  expect(await once(program, "exit")).toEqual([130, null]);
});

test("reports an unreachable service with its address and a remedy, and keeps retrying", async () => {
  const way = await openWay();
  way.cut();
  const { nextProgress } = startListening(way.url, "key", "http://127.0.0.1:3000/");
  let line = "";
  while (!line.startsWith("pilothouse: ")) line = await nextProgress();
  expect(line).toMatch(/ http:\S+ cannot be reached \(.+\): start the service, or set PILOTHOUSE_URL; trying again$/);
  expect(await nextProgress()).toMatch(/trying again/);
});
