import { EventEmitter, once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import { startDemo } from "../../gateway/pages/demo.ts";
import { onStopSignals } from "../../gateway/processes/stop-signals.ts";
import { type OwnDatabase, startOwnDatabase } from "../support/database.ts";
import { expectWait, fakeTime, pass, restoreTime, settle, type Wait } from "../support/wait.ts";
import { startTransportGateway, type TransportGateway } from "./transport-gateway.ts";

const mebibyte = 2 ** 20;

let database: OwnDatabase;
let gateway: TransportGateway;
let stopping: PromiseLike<void> | undefined;
let isStopped = false;
function stop(): void {
  stopping ??= gateway[Symbol.asyncDispose]().then(() => {
    isStopped = true;
  });
}
beforeAll(async () => {
  database = await startOwnDatabase();
  // Faked before the start, since the gateway sets some timers when it starts.
  fakeTime();
  gateway = await startTransportGateway({}, undefined, database);
});
afterAll(async () => {
  // The shutdown also waits for faked timers.
  if (gateway) stop();
  while (stopping && !isStopped) await Promise.all([pass(1_000), settle(() => isStopped, 50)]);
  restoreTime();
  await database?.[Symbol.asyncDispose]();
});

/** Connects to the gateway, or to another port. */
function openSocket(port = Number(new URL(gateway.url).port)): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Starts a request with an incomplete body. */
function beginRequest(length: number, headers = ""): Socket {
  const socket = openSocket();
  const head = `POST /v1/things/t/break HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}`;
  socket.write(`${head}Content-Length: ${length}\r\n\r\n{`);
  return socket;
}

/** Opens an HTTP/1.1 connection that is idle after one request. Calls `end` when it is closed. */
async function openIdle(end: () => void, port?: number): Promise<void> {
  const socket = openSocket(port).once("close", end);
  socket.write("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await once(socket, "data");
}

/** Opens an HTTP/2 connection. */
function openHttp2(url: string) {
  const session = connectHttp2(url).on("error", () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

const authorization = () => `Authorization: Bearer ${gateway.key}\r\n`;

/** Opens a WebSocket to a method that accepts messages of 2 MiB. */
async function openTalk(options: ClientOptions = {}): Promise<WebSocket> {
  const headers = { authorization: `Bearer ${gateway.key}` };
  const url = `${gateway.url.replace("http", "ws")}/v1/things/t/talk`;
  const client = new WebSocket(url, { headers, ...options });
  onTestFinished(() => client.terminate());
  await once(client, "open");
  return client;
}

const waits: Readonly<Record<string, Wait>> = {
  "a connection without data": {
    ms: 10_000,
    begin: (end) => void openSocket().resume().once("close", end),
  },
  "the rest of a body": {
    ms: 60_000,
    begin: (end) => void beginRequest(1_000, authorization()).resume().once("close", end),
  },
  "an idle HTTP/1.1 connection": { ms: 75_000, begin: (end) => openIdle(end) },
  "an idle connection to the demo page": {
    ms: 5_000,
    async begin(end) {
      const demo = await startDemo("127.0.0.1");
      onTestFinished(() => demo.stop());
      await openIdle(end, demo.port);
    },
  },
  "an idle HTTP/2 connection": {
    ms: 60_000,
    begin: (end) => void openHttp2(gateway.url).once("close", end),
  },
  "a ping to a gRPC client": {
    ms: 10_000,
    begin: (end) => void openHttp2(`http://${gateway.grpcAddress}`).once("ping", end),
  },
  "the request of a gRPC health check": {
    ms: 10_000,
    begin(end) {
      const headers = { ":method": "POST", ":path": "/grpc.health.v1.Health/Check", te: "trailers" };
      openHttp2(`http://${gateway.grpcAddress}`)
        .request({ ...headers, "content-type": "application/grpc" }, { endStream: false })
        .on("error", () => undefined)
        .once("close", end)
        .resume();
    },
  },
  "a WebSocket client that answers no ping": {
    ms: 40_000,
    async begin(end) {
      (await openTalk({ autoPong: false })).once("close", end);
    },
  },
  "the end of a WebSocket message above 1 MiB": {
    ms: 30_000,
    async begin(end) {
      const client = await openTalk();
      client.once("close", (code, reason) => code === 1008 && String(reason) === "message_unfinished" && end());
      client.send(Buffer.alloc(mebibyte + 1), { fin: false });
    },
  },
  "a client that continues to send after its response": {
    ms: 1_000,
    async begin(end) {
      const socket = beginRequest(1_000);
      await once(socket, "data");
      socket.once("close", end);
    },
  },
  "the rest of an oversized body": {
    ms: 1_000,
    async begin(end) {
      const socket = beginRequest(100_000_000, authorization());
      await once(socket, "data");
      socket.once("close", end);
    },
  },
  "repeated stop signals": {
    ms: 2_000,
    begin(end) {
      const signals = new EventEmitter();
      onStopSignals(signals, () => undefined, end);
      setInterval(() => signals.emit("SIGINT"), 100);
    },
  },
  "a request still running when its gateway stops": {
    ms: 30_000,
    async begin(end) {
      const socket = beginRequest(1_000, authorization()).once("close", end);
      await once(socket, "connect");
      // Leaves time for the gateway to read the request's headers.
      await pass(100);
      stop();
    },
  },
};

test("a WebSocket message of up to 1 MiB has no time limit, and each larger one has its own", async () => {
  const client = await openTalk();
  let answers = 0;
  client.on("message", () => {
    answers += 1;
  });
  for (const [bytes, ms] of [
    [mebibyte - 100, 60_000],
    [mebibyte + 1, 25_000],
    [mebibyte + 1, 25_000],
  ] as const) {
    client.send(" ".repeat(bytes), { fin: false });
    await pass(ms);
    client.send(JSON.stringify({ id: "a", text: "hello" }), { fin: true });
    await pass(1_000);
  }
  await settle(() => answers === 3);
  expect([answers, client.readyState]).toEqual([3, WebSocket.OPEN]);
});

// The last wait stops the gateway.
test.each(Object.entries(waits))("the wait for %s ends at its time limit", (_, wait) => expectWait(wait));
