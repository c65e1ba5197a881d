import { expect, test } from "vitest";
import { writeEnvelope } from "../../src/webhooks/deliveries.ts";

test("serializes an event with its identifier, type, time and data, in this order", () => {
  const event = { id: "evt_1", type: "session.failed", createdAt: new Date(0), data: { session_id: "ses_1" } };
  expect(writeEnvelope(event)).toBe(
    '{"id":"evt_1","type":"session.failed","created_at":"1970-01-01T00:00:00.000Z","data":{"session_id":"ses_1"}}',
  );
});
