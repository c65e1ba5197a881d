import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Rest } from "../support/rest.ts";
import { createTestClock } from "../support/test-clock.ts";
import { causeEvent, type Endpoints, readLog, register } from "./scene.ts";
import { startWebhookGateway, type WebhookGateway } from "./webhook-gateway.ts";

const minute = 60_000;

const clock = createTestClock({ isStill: true });
let webhooks: WebhookGateway;
let endpoints: Endpoints;
/** Client of a new account for each test. */
let rest: Rest;
let path: string;

beforeAll(async () => {
  webhooks = await startWebhookGateway(clock);
  endpoints = webhooks.endpoints;
}, 60_000);
afterAll(() => webhooks?.[Symbol.asyncDispose]());
beforeEach(async () => {
  ({ rest, path } = await webhooks.newAccount());
});

/** Waits until a list has `count` entries, by default the deliveries to the test's path. */
const until = (count: number, read: () => { readonly length: number } = () => endpoints.at(path)) =>
  expect.poll(() => read().length, { timeout: 20_000, interval: 20 }).toBe(count);

/** Waits until the log of an endpoint contains exactly the expected deliveries. */
const untilLogged = (id: string, expected: readonly object[]) =>
  expect
    .poll(() => readLog(rest, id), { timeout: 20_000 })
    .toEqual(expected.map((fields) => expect.objectContaining(fields)));

test("an event is attempted exactly six times, never before the documented times", async () => {
  endpoints.answer = () => 503;
  const id = await register(rest, endpoints.url(path));
  await causeEvent(rest);
  let tried = 1;
  const attempts: object[] = [];
  for (const minutes of [1, 5, 15, 30, 60]) {
    await until(tried);
    attempts.push({ number: tried, started_at: new Date(clock.now()).toISOString() });
    const next = new Date(clock.now() + minutes * minute).toISOString();
    await untilLogged(id, [{ status: "failed", next_attempt_at: next, response_status: 503 }]);
    clock.advance(minutes * minute - 1);
    // A delivery to another endpoint proves that the runner has looked for due jobs.
    const other = `${path}/other-${tried}`;
    const otherId = await register(rest, endpoints.url(other));
    await rest(`/v1/webhooks/${otherId}/test`, {});
    await until(1, () => endpoints.at(other));
    await rest(`/v1/webhooks/${otherId}`, undefined, { method: "DELETE" });
    expect(endpoints.at(path)).toHaveLength(tried);
    clock.advance(1);
    tried += 1;
  }
  await until(6);
  attempts.push({ number: 6, started_at: new Date(clock.now()).toISOString() });
  await untilLogged(id, [
    { status: "dlq", next_attempt_at: null, attempts: attempts.map((attempt) => expect.objectContaining(attempt)) },
  ]);
  expect(new Set(endpoints.at(path).map(({ eventId }) => eventId)).size).toBe(1);
  const { body } = await rest(`/v1/webhooks/${id}`);
  expect(body.consecutive_failures).toBe(1);
  expect(body.delivery_counts).toEqual({ pending: 0, delivered: 0, failed: 0, dlq: 1 });
}, 120_000);
