import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createAccessLog } from "../../gateway/access-log.ts";
import { SharedPort } from "../../gateway/listen.ts";
import { SlowBodies } from "../../gateway/slow-bodies.ts";
import { timeLimits } from "../../gateway/time-limits.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createLog } from "../../src/platform/log.ts";

const upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

test("logs status 499 for a client that disconnects before its upgrade is answered", async () => {
  const lines: string[] = [];
  const log = createLog("error", { write: (line) => lines.push(line) });
  const accessLog = createAccessLog({ clock: systemClock, log, requestIdOf: () => "req_1" });
  const upgraded = Promise.withResolvers<void>();
  const port = new SharedPort({
    host: "127.0.0.1",
    port: 0,
    log,
    tls: undefined,
    limits: timeLimits,
    bodies: new SlowBodies(timeLimits.request),
    accept: () => true,
    onRequest: (_, response) => void response.end(),
    onUpgrade(request, response) {
      accessLog.onUpgrade(request, response);
      upgraded.resolve();
    },
    onClientError: (_, socket) => void socket.destroy(),
  });
  const number = await port.start();
  onTestFinished(() => port.stop(0));
  const client = connect(number, "127.0.0.1");
  await once(client, "connect");
  client.write(upgrade);
  await upgraded.promise;
  client.destroy();
  await expect.poll(() => lines.length).toBe(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ msg: "request", method: "GET", status: 499, bytes: 0 });
});
