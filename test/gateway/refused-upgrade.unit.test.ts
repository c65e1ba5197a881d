import { once } from "node:events";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { SharedPort } from "../../gateway/listen.ts";
import { SlowBodies } from "../../gateway/slow-bodies.ts";
import { timeLimits } from "../../gateway/time-limits.ts";
import { createLog } from "../../src/platform/log.ts";
import { makeSelfSigned } from "../support/self-signed.ts";

const upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

test.each(["plain", "TLS"])("a refused upgrade followed by bytes leaves no open connection over %s", async (kind) => {
  const { key, cert } = makeSelfSigned();
  let open = 0;
  const port = new SharedPort({
    host: "127.0.0.1",
    port: 0,
    log: createLog("silent"),
    tls: kind === "TLS" ? { key: Buffer.from(key), cert: Buffer.from(cert) } : undefined,
    limits: timeLimits,
    bodies: new SlowBodies(timeLimits.request),
    accept: (socket) => {
      open += 1;
      socket.once("close", () => (open -= 1));
      return true;
    },
    onRequest: (_, response) => void response.end(),
    onUpgrade: (_, response) => void response.end("refused"),
    onClientError: (_, socket) => void socket.destroy(),
  });
  const number = await port.start();
  onTestFinished(() => port.stop(0));
  const client =
    kind === "TLS"
      ? connectTls({ port: number, rejectUnauthorized: false })
      : connect({ port: number, host: "127.0.0.1" });
  await once(client, kind === "TLS" ? "secureConnect" : "connect");
  client.write(upgrade);
  client.write("bytes that are no frame");
  const [answer] = await once(client, "data");
  expect(String(answer)).toContain("refused");
  client.destroy();
  await expect.poll(() => open, { timeout: 5_000 }).toBe(0);
});
