import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { lowestId } from "../../src/platform/ids.ts";
import { deleteOldDeliveries } from "../../src/webhooks/delivery-settlement.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import type { Rest } from "../support/rest.ts";
import { createTestClock } from "../support/test-clock.ts";
import { causeEvent, type Endpoints, meetChallenges, readLog, register } from "./scene.ts";
import { startWebhookGateway, type WebhookGateway } from "./webhook-gateway.ts";

const clock = createTestClock({ isStill: true });
let webhooks: WebhookGateway;
let worker: FakeWorker;
let endpoints: Endpoints;
/** Client of a new account for each test. */
let rest: Rest;
let path: string;

beforeAll(async () => {
  webhooks = await startWebhookGateway(clock);
  endpoints = webhooks.endpoints;
  worker = await webhooks.gateway.running.worker({ slots: 40 });
}, 60_000);
afterAll(() => webhooks?.[Symbol.asyncDispose]());
beforeEach(async () => {
  ({ rest, path } = await webhooks.newAccount());
});

const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const beginSession = async (): Promise<string> => (await rest("/v1/sessions", {})).body.id;
const until = (count: number) =>
  expect.poll(() => endpoints.at(path).length, { timeout: 50_000, interval: 20 }).toBe(count);

/** Waits until the delivery counts of an endpoint equal `counts`. */
const untilCounted = (id: string, counts: object) =>
  expect
    .poll(async () => (await rest(`/v1/webhooks/${id}`)).body.delivery_counts, { timeout: 50_000 })
    .toEqual({ pending: 0, delivered: 0, failed: 0, dlq: 0, ...counts });

test("first attempts follow the order of each subject's events, even if many fail", async () => {
  endpoints.answer = ({ number }) => (number % 3 === 0 ? 500 : 200);
  const id = await register(rest, endpoints.url(path), { events: ["session.challenge_detected"] });
  const sessions = await Promise.all([beginSession(), beginSession(), beginSession()]);
  await Promise.all(sessions.map((session) => meetChallenges(worker, session, [1, 60])));
  await until(180);
  await untilCounted(id, { delivered: 120, failed: 60 });
  for (const session of sessions) {
    const order = endpoints.at(path).filter((arrival) => arrival.session === session);
    expect(order.map(({ number }) => number)).toEqual(numbersTo(60));
  }
}, 120_000);

test("hanging retries do not delay newer events", async () => {
  endpoints.answer = () => 500;
  const id = await register(rest, endpoints.url(path), { events: ["session.challenge_detected"] });
  const session = await beginSession();
  await meetChallenges(worker, session, [1, 20]);
  await untilCounted(id, { failed: 20 });
  const held: ServerResponse[] = [];
  endpoints.answer = ({ path: to, number }, response) => {
    if (to !== path || number > 20) return 200;
    held.push(response);
    return undefined;
  };
  clock.advance(60_000);
  // One of the endpoint's eight delivery slots is reserved for first attempts.
  await expect.poll(() => held.length, { timeout: 20_000 }).toBe(7);
  await meetChallenges(worker, session, [21, 40]);
  await until(20 + 7 + 20);
  expect(held.every(({ writableEnded, destroyed }) => !writableEnded && !destroyed)).toBe(true);
  endpoints.answer = () => 200;
  for (const response of held) response.writeHead(204).end();
  await untilCounted(id, { delivered: 40 });
}, 60_000);

test("deactivating an endpoint abandons its pending deliveries, which can be replayed", async () => {
  endpoints.answer = () => 500;
  const id = await register(rest, endpoints.url(path), { events: ["session.challenge_detected"] });
  const session = await beginSession();
  await meetChallenges(worker, session, [1, 30]);
  await untilCounted(id, { failed: 30 });
  const setActive = (active: boolean) =>
    rest(`/v1/webhooks/${id}`, undefined, {
      method: "PATCH",
      body: JSON.stringify({ active }),
      headers: { "content-type": "application/json" },
    });
  // The response reflects the change.
  expect((await setActive(false)).body.delivery_counts).toMatchObject({ failed: 0, dlq: 30 });
  // The clock has not advanced, so the next attempts are only due in a minute.
  await untilCounted(id, { dlq: 30 });
  expect(new Set((await readLog(rest, id)).map(({ reason }) => reason))).toEqual(new Set(["endpoint_inactive"]));
  endpoints.answer = () => 200;
  // An event that occurs while the endpoint is inactive is delivered to another endpoint only.
  await register(rest, endpoints.url("/meanwhile"), { events: ["session.challenge_detected"] });
  await meetChallenges(worker, session, [31, 35]);
  await expect.poll(() => endpoints.at("/meanwhile").length, { timeout: 20_000 }).toBe(5);
  await setActive(true);
  expect((await rest(`/v1/webhooks/${id}/replay-failed`, { since: "2020-01-01T00:00:00Z" })).body).toEqual({
    count: 30,
  });
  await untilCounted(id, { dlq: 30, delivered: 30 });
  const again = endpoints.at(path).slice(30);
  expect(again.map(({ number }) => number).sort((a, b) => a - b)).toEqual(numbersTo(30));
  // The replayed deliveries carry the original events.
  expect(new Set(endpoints.at(path).map(({ eventId }) => eventId)).size).toBe(30);
}, 60_000);

test("a deleted endpoint receives nothing while other endpoints of the account continue", async () => {
  endpoints.answer = ({ path: to }) => (to === path ? 500 : 200);
  const id = await register(rest, endpoints.url(path), { events: ["api_key.revoked"] });
  await register(rest, endpoints.url("/stays"), { events: ["api_key.revoked"] });
  await causeEvent(rest);
  await untilCounted(id, { failed: 1 });
  await rest(`/v1/webhooks/${id}`, undefined, { method: "DELETE" });
  clock.advance(60_000);
  await causeEvent(rest);
  await expect.poll(() => endpoints.at("/stays").length, { timeout: 20_000 }).toBe(2);
  expect(endpoints.at(path)).toHaveLength(1);
  // The API does not show deliveries of a deleted endpoint, so the test reads the database.
  const left = webhooks.gateway.running.app.db.sql.selectFrom("webhook_deliveries").where("endpoint_id", "=", id);
  const given = () => left.select(["status", "reason"]).execute();
  await expect.poll(given, { timeout: 20_000 }).toEqual([{ status: "dlq", reason: "endpoint_deleted" }]);
}, 60_000);

test("a test delivery is attempted once and not counted", async () => {
  endpoints.answer = () => 500;
  const id = await register(rest, endpoints.url(path), { events: ["session.failed"] });
  const { body } = await rest(`/v1/webhooks/${id}/test`, {});
  const logged = async () => (await readLog(rest, id))[0];
  await expect.poll(logged, { timeout: 20_000 }).toMatchObject({
    id: body.delivery_id,
    status: "dlq",
    response_status: 500,
    response_body: "answered with 500",
  });
  expect(endpoints.at(path)).toMatchObject([{ type: "test.ping", eventId: body.event_id }]);
  expect((await rest(`/v1/webhooks/${id}`)).body).toMatchObject({
    consecutive_failures: 0,
    delivery_counts: { pending: 0, delivered: 0, failed: 0, dlq: 0 },
  });
}, 60_000);

test("the log is cleared in batches with its counts, and metrics report attempts and their delay", async () => {
  const id = await register(rest, endpoints.url(path), { events: ["session.challenge_detected"] });
  await meetChallenges(worker, await beginSession(), [1, 5]);
  await untilCounted(id, { delivered: 5 });
  const { app } = webhooks.gateway.running;
  const clear = (before: number) => deleteOldDeliveries(app.db, lowestId("dlv", before), 2);
  expect(await clear(clock.now() - 86_400_000)).toBe(0);
  while ((await clear(clock.now() + 86_400_000)) === 2);
  expect(await readLog(rest, id)).toEqual([]);
  await untilCounted(id, {});
  const metrics = await app.metrics.metrics();
  expect(metrics).toMatch(/pilothouse_jobs_attempts_total\{kind="webhook",outcome="done"\} [1-9]/);
  expect(metrics).toMatch(/pilothouse_jobs_lag_seconds_count\{kind="webhook"\} [1-9]/);
}, 60_000);
