// Port whose handler throws. Prints the number of closed connections, the response to another connection, and the log.
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { SharedPort } from "../../gateway/listen.ts";
import { SlowBodies } from "../../gateway/slow-bodies.ts";
import { timeLimits } from "../../gateway/time-limits.ts";
import { keepRunning } from "../../src/platform/last-resort.ts";
import { createLog } from "../../src/platform/log.ts";
import { createMetrics } from "../../src/platform/metrics.ts";

const throwPlanted = (): never => {
  throw new Error("planted");
};

/** Errors thrown synchronously, in a later turn of the event loop, and in a promise that is not awaited. */
const faults = [throwPlanted, () => void setImmediate(throwPlanted), () => void Promise.reject(new Error("planted"))];

const logged: string[] = [];
const log = createLog("error", { write: (line) => void logged.push(JSON.parse(line).msg) });
keepRunning(log);
const port = new SharedPort({
  host: "127.0.0.1",
  port: 0,
  tls: undefined,
  accept: () => true,
  log,
  limits: timeLimits,
  bodies: new SlowBodies(timeLimits.request),
  onRequest: ({ url = "" }, response) => {
    faults[Number(url.slice(1))]?.();
    response.end("served");
  },
  onUpgrade: throwPlanted,
  onClientError: (_error, socket) => socket.destroy(),
});
const number = await port.start();
const other = connectHttp2(`http://127.0.0.1:${number}`);

/** Sends a request over HTTP/1.1. Resolves when the connection is closed. */
async function sendHttp1(head: string): Promise<void> {
  const socket = connect(number, "127.0.0.1").on("error", () => undefined);
  socket.resume().write(`${head}\r\nHost: localhost\r\n\r\n`);
  await once(socket, "close");
}

/** Sends a request over HTTP/2. Resolves when the connection is closed. */
async function sendHttp2(path: string): Promise<void> {
  const session = connectHttp2(`http://127.0.0.1:${number}`).on("error", () => undefined);
  const closed = once(session, "close");
  const stream = session.request({ ":path": path });
  stream.on("error", () => undefined).resume();
  await closed;
}

let ended = 0;
for (const index of faults.keys()) {
  await sendHttp1(`GET /${index} HTTP/1.1`);
  await sendHttp2(`/${index}`);
  ended += 2;
}
await sendHttp1("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket");
const answer = other.request({ ":path": "/fine" });
const [served] = await once(answer.setEncoding("utf8"), "data");
const [counter] = (await createMetrics().getSingleMetric("pilothouse_uncaught_errors_total")?.get())?.values ?? [];
process.stdout.write(JSON.stringify({ ended: ended + 1, served, uncaught: counter?.value, logged }));
other.destroy();
await port.stop(0);
