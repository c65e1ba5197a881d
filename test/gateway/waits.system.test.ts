import { EventEmitter, once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { onStopSignals } from "../../gateway/processes/stop-signals.ts";
import { type OwnDatabase, startOwnDatabase } from "../support/database.ts";
import { expectWait, fakeTime, pass, restoreTime, settle, type Wait } from "../support/wait.ts";
import { type DoorGateway, startDoorGateway } from "./door-gateway.ts";

let database: OwnDatabase;
let gateway: DoorGateway;
let stopping: PromiseLike<void> | undefined;
let isStopped = false;
function stop(): void {
  stopping ??= gateway[Symbol.asyncDispose]().then(() => {
    isStopped = true;
  });
}
beforeAll(async () => {
  database = await startOwnDatabase();
  // The gateway sets some of its timers when it starts.
  fakeTime();
  gateway = await startDoorGateway({}, undefined, database);
});
afterAll(async () => {
  // What stops waits by faked time, too.
  if (gateway) stop();
  while (stopping && !isStopped) await Promise.all([pass(1_000), settle(() => isStopped, 50)]);
  restoreTime();
  await database?.[Symbol.asyncDispose]();
});

/** Begins a request whose body does not come whole. */
function beginRequest(length: number, headers = ""): Socket {
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  const head = `POST /v1/things/t/break HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}`;
  socket.write(`${head}Content-Length: ${length}\r\n\r\n{`);
  return socket;
}

const authorization = () => `Authorization: Bearer ${gateway.key}\r\n`;

const waits: Readonly<Record<string, Wait>> = {
  "a WebSocket client that answers no ping": {
    ms: 40_000,
    async begin(end) {
      const headers = { authorization: `Bearer ${gateway.key}` };
      const url = `${gateway.url.replace("http", "ws")}/v1/things/t/talk`;
      const client = new WebSocket(url, { headers, autoPong: false });
      onTestFinished(() => client.terminate());
      await once(client, "open");
      client.once("close", end);
    },
  },
  "a client that goes on sending after its answer": {
    ms: 1_000,
    async begin(end) {
      const socket = beginRequest(1_000);
      await once(socket, "data");
      socket.once("close", end);
    },
  },
  "the rest of a body that is too large": {
    ms: 1_000,
    async begin(end) {
      const socket = beginRequest(100_000_000, authorization()).once("data", end);
      await once(socket, "connect");
    },
  },
  "a signal to stop that hurries": {
    ms: 2_000,
    begin(end) {
      const signals = new EventEmitter();
      onStopSignals(signals, () => undefined, end);
      setInterval(() => signals.emit("SIGINT"), 100);
    },
  },
  "a request that runs when its gateway stops": {
    ms: 30_000,
    async begin(end) {
      const socket = beginRequest(1_000, authorization()).once("close", end);
      await once(socket, "connect");
      // Its gateway reads its head.
      await pass(100);
      stop();
    },
  },
};

test.each(Object.entries(waits))("%s is not waited for much shorter or longer", (_, wait) => expectWait(wait));
