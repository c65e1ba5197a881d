import { createServer } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { OutgoingEvent, Sender, SenderOptions } from "../../src/webhooks/sender.ts";
import { createSender } from "../../src/webhooks/sender.ts";
import { hostileIdentity, hostileName, hostilities, startHostile } from "./hostile-receivers.ts";
import { closeAfterTest, listen, startReceiver } from "./receiver.ts";

const event: OutgoingEvent = { id: "evt_1", type: "session.completed", createdAt: new Date(), body: '{"id":"evt_1"}' };
const secrets = [`whsec_${"A".repeat(32)}`];

function makeSender(options: Partial<SenderOptions> = {}): Sender {
  const sender = createSender({
    config: { webhookAllow: ["127.0.0.1"] },
    resolve: async () => [{ address: "127.0.0.1", family: 4 }],
    ca: hostileIdentity.cert,
    ...options,
  });
  closeAfterTest(() => sender.stop());
  return sender;
}

const send = (sender: Sender, url: string) => sender.send({ url, secrets, event }, new AbortController().signal);

test.each(Object.entries(hostilities))("handles a receiver that %s", async (_name, hostility) => {
  // 15 s suffices on a loaded machine. Receivers that hold the sender get a short timeout.
  const timeoutMs = hostility.isHolding ? 1_000 : 15_000;
  const answer = await send(makeSender({ timeoutMs }), `https://${hostileName}:${await startHostile(hostility)}/`);
  const { startedAt, durationMs, ...outcome } = answer;
  expect(outcome).toEqual(hostility.becomes);
  expect(startedAt).toBeInstanceOf(Date);
  if (hostility.isHolding) expect(durationMs).toBeGreaterThan(0.9 * timeoutMs);
  expect(durationMs).toBeLessThan(15_000);
});

test("reports a receiver with a wrong certificate or without an answer", async () => {
  const { port } = await startReceiver(undefined, hostileIdentity);
  const untrusting = createSender({ config: { webhookAllow: ["127.0.0.1"] } });
  closeAfterTest(() => untrusting.stop());
  expect(await send(untrusting, `https://127.0.0.1:${port}/`)).toMatchObject({ error: "tls" });
  expect(await send(makeSender(), `https://other.example:${port}/`)).toMatchObject({ error: "tls" });
  const mute = await listen(createServer());
  expect(await send(makeSender({ timeoutMs: 200 }), `https://${hostileName}:${mute}/`)).toMatchObject({
    error: "timeout",
  });
  expect(await send(makeSender(), "https://127.0.0.1:1024/")).toMatchObject({ error: "connection_refused" });
  const resolve = () => Promise.reject(Object.assign(new Error("nowhere"), { code: "ENOTFOUND" }));
  expect(await send(makeSender({ resolve }), "https://nowhere.example/")).toMatchObject({ error: "name_not_resolved" });
  const lost = makeSender({ resolve: () => new Promise(() => undefined), timeoutMs: 200 });
  expect(await send(lost, "https://late.example/")).toMatchObject({ error: "timeout" });
});

test("reuses a connection after a short response but not after a long one", async () => {
  let length = 1_000;
  const { port, connections } = await startReceiver(
    (_request, response) => void response.end("x".repeat(length)),
    hostileIdentity,
  );
  const sender = makeSender();
  const sendThrice = async (): Promise<void> => {
    for (let count = 0; count < 3; count += 1) {
      await send(sender, `https://${hostileName}:${port}/`);
      // A connection can be reused one turn of the event loop after its response.
      await setImmediate();
    }
  };
  await sendThrice();
  expect(connections()).toBe(1);
  length = 1_000_000;
  await sendThrice();
  expect(connections()).toBe(3);
});

test("an aborted attempt ends with the abort reason", async () => {
  const reached = Promise.withResolvers<void>();
  const { port } = await startReceiver(() => reached.resolve(), hostileIdentity);
  const calledOff = new AbortController();
  const url = `https://${hostileName}:${port}/`;
  const sending = makeSender().send({ url, secrets, event }, calledOff.signal);
  await reached.promise;
  calledOff.abort(new Error("enough"));
  await expect(sending).rejects.toThrow("enough");
});
