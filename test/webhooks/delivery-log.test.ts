import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { writeEnvelope } from "../../src/webhooks/deliveries.ts";
import { clockAt } from "../support/clock-at.ts";
import type { Answer, Rest } from "../support/rest.ts";
import { causeEvent, type Endpoints, giveUpDelivery, register } from "./scene.ts";
import { startWebhookGateway, type WebhookGateway } from "./webhook-gateway.ts";

const day = 86_400_000;
const pollOptions = { timeout: 20_000, interval: 50 };

let now = Date.now();
let webhooks: WebhookGateway;
let endpoints: Endpoints;
/** Client of a new account for each test, which has one endpoint. */
let rest: Rest;
let id: string;
let path: string;

beforeAll(async () => {
  webhooks = await startWebhookGateway(clockAt(() => now));
  endpoints = webhooks.endpoints;
}, 60_000);
afterAll(() => webhooks?.[Symbol.asyncDispose]());
beforeEach(async () => {
  now = Math.max(now, Date.now());
  ({ rest, path } = await webhooks.newAccount());
  id = await register(rest, endpoints.url(path));
});

const outcome = ({ status, body }: Answer) => (status < 400 ? status : String(body.type).split("/").at(-1));
const log = async (query = "") => (await rest(`/v1/webhooks/${id}/deliveries?${query}`)).body.data;
const sendTest = () => rest(`/v1/webhooks/${id}/test`, {});
const replay = (delivery: string) => rest(`/v1/webhook-deliveries/${delivery}/replay`, {});
const replayFailed = (since: number) =>
  rest(`/v1/webhooks/${id}/replay-failed`, { since: new Date(since).toISOString() });
const change = (fields: object) => rest(`/v1/webhooks/${id}`, fields, { method: "PATCH" });
const endpoint = async () => (await rest(`/v1/webhooks/${id}`)).body;

/** Waits until the newest delivery has a status, and returns the delivery. */
async function newest(status: string) {
  await expect.poll(async () => (await log("limit=1"))[0]?.status, pollOptions).toBe(status);
  return (await log("limit=1"))[0];
}

describe("a test delivery", () => {
  test("is sent regardless of the endpoint's event types, logged and not counted", async () => {
    await change({ events: ["session.failed"] });
    const { status, body } = await sendTest();
    expect([status, body]).toEqual([
      202,
      {
        delivery_id: expect.stringMatching(/^dlv_/),
        event_id: expect.stringMatching(/^evt_/),
        event_type: "test.ping",
      },
    ]);
    expect(await newest("delivered")).toEqual({
      id: body.delivery_id,
      webhook_id: id,
      event_id: body.event_id,
      event_type: "test.ping",
      status: "delivered",
      attempts: [
        {
          number: 1,
          started_at: expect.stringMatching(/Z$/),
          duration_ms: expect.any(Number),
          response_status: 200,
          response_body: "answered with 200",
          error: null,
        },
      ],
      next_attempt_at: null,
      replay_of: null,
      created_at: new Date(now).toISOString(),
      delivered_at: new Date(now).toISOString(),
      response_status: 200,
      response_body: "answered with 200",
      reason: null,
    });
    expect(endpoints.at(path)).toMatchObject([{ type: "test.ping", eventId: body.event_id }]);
    expect((await endpoint()).delivery_counts).toEqual({ pending: 0, delivered: 0, failed: 0, dlq: 0 });
    // A test delivery does not create an event of the account.
    expect((await rest("/v1/events")).body.data).toEqual([]);
  });

  test("is attempted once if it fails, does not change the endpoint and cannot be replayed", async () => {
    endpoints.answer = () => 500;
    const { delivery_id } = (await sendTest()).body;
    expect(await newest("dlq")).toMatchObject({ response_status: 500, attempts: [{ number: 1 }] });
    expect(await endpoint()).toMatchObject({
      consecutive_failures: 0,
      delivery_counts: { pending: 0, delivered: 0, failed: 0, dlq: 0 },
    });
    expect(outcome(await replay(delivery_id))).toBe("conflict");
    expect((await replayFailed(0)).body).toEqual({ count: 0 });
  });

  test("is not sent to an inactive endpoint", async () => {
    await change({ active: false });
    expect(outcome(await sendTest())).toBe("conflict");
    expect(outcome(await replayFailed(0))).toBe("conflict");
    expect(await log()).toEqual([]);
  });
});

describe("the delivery log", () => {
  test("is paginated and can be filtered by status and by type", async () => {
    await causeEvent(rest);
    await newest("delivered");
    endpoints.answer = () => 500;
    await causeEvent(rest);
    await newest("failed");
    await sendTest();
    await newest("dlq");
    const all = await log();
    const shown = ({ status, event_type }: { status: string; event_type: string }) => [status, event_type];
    expect(all.map(shown)).toEqual([
      ["dlq", "test.ping"],
      ["failed", "api_key.revoked"],
      ["delivered", "api_key.revoked"],
    ]);
    expect(await log("status=failed")).toEqual([all[1]]);
    expect(await log("event_type=api_key.revoked")).toEqual(all.slice(1));
    expect(await log("event_type=api_key.revoked&status=delivered")).toEqual([all[2]]);
    const first = (await rest(`/v1/webhooks/${id}/deliveries?limit=2`)).body;
    const second = (await rest(`/v1/webhooks/${id}/deliveries?limit=2&cursor=${first.next_cursor}`)).body;
    expect([...first.data, ...second.data]).toEqual(all);
    expect([first.has_more, second.has_more]).toEqual([true, false]);
    expect(await endpoint()).toMatchObject({
      consecutive_failures: 1,
      delivery_counts: { pending: 0, delivered: 1, failed: 1, dlq: 0 },
    });
  });

  test("contains only events sent to the endpoint, as the event list shows them", async () => {
    const other = await register(rest, endpoints.url(`${path}/other`), { events: ["session.failed"] });
    await causeEvent(rest);
    const { event_id } = await newest("delivered");
    const [event] = (await rest("/v1/events")).body.data;
    expect(event.id).toBe(event_id);
    expect((await rest(`/v1/webhooks/${other}/deliveries`)).body.data).toEqual([]);
    const { created_at, ...rest_ } = event;
    expect(endpoints.at(path).map(({ body }) => body)).toEqual([
      writeEnvelope({ ...rest_, createdAt: new Date(created_at) }),
    ]);
  });
});

describe("a replay", () => {
  test("of one delivery creates a new delivery of the same event", async () => {
    await causeEvent(rest);
    const first = await newest("delivered");
    const { status, body } = await replay(first.id);
    expect(status).toBe(202);
    expect(body).toMatchObject({ status: "pending", replay_of: first.id, event_id: first.event_id, attempts: [] });
    expect((await newest("delivered")).id).toBe(body.id);
    expect(endpoints.at(path).map(({ eventId }) => eventId)).toEqual([first.event_id, first.event_id]);
    expect((await endpoint()).delivery_counts).toMatchObject({ delivered: 2 });
    const { data } = (await rest("/v1/account/audit-log?action=webhook_delivery.replay")).body;
    expect(data).toMatchObject([{ subject_id: body.id, details: { replay_of: first.id, event_id: first.event_id } }]);
  });

  test("of a delivery that awaits a retry replaces the retry immediately", async () => {
    endpoints.answer = () => 500;
    await causeEvent(rest);
    const failing = await newest("failed");
    endpoints.answer = () => 200;
    const { status, body } = await replay(failing.id);
    expect([status, body]).toMatchObject([202, { status: "pending", replay_of: failing.id }]);
    expect((await newest("delivered")).id).toBe(body.id);
    const given = { status: "dlq", reason: "replayed", next_attempt_at: null, attempts: failing.attempts };
    expect((await log("status=dlq"))[0]).toMatchObject({ id: failing.id, ...given });
    // The replaced retry is not sent a minute later, and a bulk replay skips the delivery.
    now += 90_000;
    expect((await replayFailed(0)).body).toEqual({ count: 0 });
    expect(outcome(await sendTest())).toBe(202);
    await newest("delivered");
    expect(
      endpoints
        .at(path)
        .map(({ eventId }) => eventId)
        .slice(0, -1),
    ).toEqual(Array(2).fill(failing.event_id));
  });

  test("of a pending delivery sends it immediately", async () => {
    const held: ServerResponse[] = [];
    // Deliveries of earlier tests may still arrive.
    endpoints.answer = (arrival, response) => (arrival.path === path && held.push(response) === 1 ? undefined : 200);
    await causeEvent(rest);
    const waiting = await newest("pending");
    await expect.poll(() => held.length, pollOptions).toBe(1);
    const { body } = await replay(waiting.id);
    expect((await newest("delivered")).id).toBe(body.id);
    held[0]?.writeHead(204).end();
  });

  test("is refused for an inactive endpoint", async () => {
    endpoints.answer = () => 500;
    await causeEvent(rest);
    const { id: failing } = await newest("failed");
    // The response already counts the abandoned delivery.
    expect((await change({ active: false })).body.delivery_counts).toMatchObject({ failed: 0, dlq: 1 });
    expect(await newest("dlq")).toMatchObject({ id: failing });
    expect(outcome(await replay(failing))).toBe("conflict");
  });

  test("answers not-found to other accounts and after the endpoint is deleted", async () => {
    await causeEvent(rest);
    const { id: delivered } = await newest("delivered");
    const own = rest;
    ({ rest } = await webhooks.newAccount());
    expect(outcome(await replay(delivered))).toBe("not-found");
    rest = own;
    await rest(`/v1/webhooks/${id}`, undefined, { method: "DELETE" });
    expect(outcome(await replay(delivered))).toBe("not-found");
  });

  test("of all failures replays each dead letter since a time once", async () => {
    endpoints.answer = () => 500;
    const old = await giveUpDelivery(rest, id);
    now += day;
    const recent = await giveUpDelivery(rest, id);
    endpoints.answer = () => 200;
    const before = endpoints.at(path).length;
    expect((await replayFailed(now)).body).toEqual({ count: 1 });
    await expect.poll(() => endpoints.at(path).length, pollOptions).toBe(before + 1);
    expect(await newest("delivered")).toMatchObject({ replay_of: recent });
    expect((await replayFailed(0)).body).toEqual({ count: 1 });
    await expect.poll(() => endpoints.at(path).length, pollOptions).toBe(before + 2);
    expect(await newest("delivered")).toMatchObject({ replay_of: old });
    expect((await replayFailed(0)).body).toEqual({ count: 0 });
    expect(await endpoint()).toMatchObject({ delivery_counts: { dlq: 2, pending: 0, failed: 0 }, replayed_count: 2 });
  });
});

test("deactivating an endpoint abandons its deliveries, and reactivating resets its failure count", async () => {
  endpoints.answer = () => 500;
  await causeEvent(rest);
  await newest("failed");
  expect((await endpoint()).consecutive_failures).toBe(1);
  await change({ active: false });
  expect(await newest("dlq")).toMatchObject({ reason: "endpoint_inactive", next_attempt_at: null });
  // Events during the inactivity are not delivered later: the fan-out skipped the endpoint before the other one
  // received them.
  await register(rest, endpoints.url(`${path}/meanwhile`));
  await causeEvent(rest);
  await expect.poll(() => endpoints.at(`${path}/meanwhile`).length, pollOptions).toBe(1);
  expect((await endpoint()).consecutive_failures).toBe(1);
  expect((await change({ active: true })).body.consecutive_failures).toBe(0);
  expect(await log()).toHaveLength(1);
});
