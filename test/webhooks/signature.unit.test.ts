import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { expect, test } from "vitest";
import { createSender } from "../../src/webhooks/sender.ts";
import { clockAt } from "../support/clock-at.ts";
import { closeAfterTest, type Received, startReceiver } from "./receiver.ts";

const newest = `whsec_${"bmV3".repeat(8)}`;
const previous = `whsec_${"b2xk".repeat(8)}`;
const other = `whsec_${"b3Ro".repeat(8)}`;
const event = {
  id: "evt_01jd2z5r1v7k9m3q8t4w6x0y2b",
  type: "session.completed",
  createdAt: new Date("2026-11-22T10:00:00.999Z"),
  body: '{"id":"evt_01jd2z5r1v7k9m3q8t4w6x0y2b","type":"session.completed","data":{"text":"Grüße \\u0000"}}',
};

/** Sends the event to a local receiver with a timestamp `age` seconds in the past. Returns the received request. */
async function deliver(secrets: readonly string[], age = 0): Promise<Received> {
  const { port, received } = await startReceiver();
  const clock = clockAt(() => Date.now() - age * 1_000);
  const sender = createSender({ config: { webhookAllow: [`127.0.0.1:${port}`] }, clock });
  closeAfterTest(() => sender.stop());
  const attempt = { url: `http://127.0.0.1:${port}/`, secrets, event };
  expect(await sender.send(attempt, new AbortController().signal)).toMatchObject({ status: 200, body: "ok" });
  const [delivery] = received;
  if (!delivery) throw new Error("no delivery was received");
  return delivery;
}

const headerOf = ({ headers }: Received, name: string): string => String(headers[name] ?? "");

/** The two official verifiers, which throw unless the secret fits the delivery. */
const verifiers = {
  stripe(delivery: Received, secret: string): unknown {
    return Stripe.webhooks.constructEvent(delivery.body, headerOf(delivery, "x-service-signature"), secret, 300);
  },
  standardwebhooks(delivery: Received, secret: string): unknown {
    const names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    const headers = Object.fromEntries(names.map((name) => [name, headerOf(delivery, name)]));
    return new Webhook(secret).verify(delivery.body, headers);
  },
};

test("a delivery contains its event id, type and time", async () => {
  const delivery = await deliver([newest]);
  expect(delivery.body).toBe(event.body);
  expect(delivery.headers).toMatchObject({
    "content-type": "application/json",
    "x-service-event-id": event.id,
    "x-service-event-type": event.type,
    "x-service-emitted-at": "1795341600",
    "accept-encoding": "identity",
    "webhook-id": event.id,
  });
  expect(headerOf(delivery, "x-service-signature")).toMatch(/^t=\d{10},v1=[0-9a-f]{64}$/);
});

test.each(Object.entries(verifiers))("%s accepts deliveries signed with either secret", async (_name, verify) => {
  const delivery = await deliver([newest]);
  expect(verify(delivery, newest)).toEqual(JSON.parse(event.body));
  const rotated = await deliver([newest, previous]);
  expect(verify(rotated, newest)).toEqual(JSON.parse(event.body));
  expect(verify(rotated, previous)).toEqual(JSON.parse(event.body));
  expect(() => verify(delivery, previous)).toThrow();
});

test.each(Object.entries(verifiers))("%s refuses forged deliveries", async (_name, verify) => {
  const delivery = await deliver([newest, previous]);
  expect(() => verify(delivery, other)).toThrow();
  expect(() => verify({ ...delivery, body: delivery.body.replace("Gr", "gr") }, newest)).toThrow();
  expect(verify(await deliver([newest], 290), newest)).toBeDefined();
  const old = await deliver([newest], 302);
  expect(() => verify(old, newest)).toThrow();
});

test("each attempt has a new signature and the same event id", async () => {
  const { port, received } = await startReceiver();
  let now = Date.now() - 60_000;
  const sender = createSender({ config: { webhookAllow: ["127.0.0.1"] }, clock: clockAt(() => now) });
  closeAfterTest(() => sender.stop());
  const attempt = { url: `http://127.0.0.1:${port}/`, secrets: [newest], event };
  await sender.send(attempt, new AbortController().signal);
  now += 60_000;
  await sender.send(attempt, new AbortController().signal);
  const timestamps = received.map((delivery) => Number(headerOf(delivery, "webhook-timestamp")));
  expect(timestamps[1]).toBe((timestamps[0] ?? 0) + 60);
  expect(new Set(received.map((delivery) => headerOf(delivery, "webhook-signature"))).size).toBe(2);
  expect(new Set(received.map((delivery) => headerOf(delivery, "webhook-id"))).size).toBe(1);
});
