import { expect, test } from "vitest";
import { webhooks } from "../../sdk/typescript/src/index.ts";
import { signatureHeaders } from "../../src/webhooks/webhook-signature.ts";

const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
const other = `whsec_${Buffer.alloc(24, 8).toString("base64")}`;
const body = '{"id":"evt_1","type":"test.ping","data":{"message":"ü"}}';

/** Signs a delivery as the service does, some seconds ago. */
function delivery(age: number, secrets: readonly string[] = [secret]) {
  const timestamp = Math.floor(Date.now() / 1000) - age;
  return { body, secret, headers: signatureHeaders(secrets, { id: "evt_1", body, timestamp }) };
}

test.each([0, 290, -290])("accepts a delivery whose clock differs by %d s", async (age) => {
  expect(await webhooks.verify(delivery(age))).toMatchObject({ id: "evt_1", type: "test.ping" });
});

test.each([310, -310])("rejects a delivery whose clock differs by %d s", async (age) => {
  await expect(webhooks.verify(delivery(age))).rejects.toBeInstanceOf(webhooks.WebhookVerificationError);
  expect(await webhooks.verify({ ...delivery(age), toleranceSeconds: 600 })).toMatchObject({ id: "evt_1" });
});

test("accepts the old secret during a rotation, bytes, and headers of a Request", async () => {
  const rotated = delivery(0, [other, secret]);
  const bytes = new TextEncoder().encode(body);
  expect(await webhooks.verify({ ...rotated, body: bytes, headers: new Headers(rotated.headers) })).toMatchObject({
    id: "evt_1",
  });
});

test.each<[string, Partial<webhooks.WebhookDelivery>]>([
  ["another body", { body: body.replace("ping", "pong") }],
  ["another secret", { secret: other }],
  ["no headers", { headers: {} }],
  ["a signature that is no base64", { headers: { ...delivery(0).headers, "webhook-signature": "v1,§" } }],
  ["a timestamp that is no number", { headers: { ...delivery(0).headers, "webhook-timestamp": "now" } }],
])("rejects %s", async (_, change) => {
  const verified = webhooks.verify({ ...delivery(0), ...change });
  await expect(verified).rejects.toBeInstanceOf(webhooks.WebhookVerificationError);
});
