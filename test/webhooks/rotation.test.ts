import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestClock } from "../support/test-clock.ts";
import type { Arrival } from "./scene.ts";
import { startWebhookGateway, type WebhookGateway } from "./webhook-gateway.ts";

const day = 86_400_000;
const clock = createTestClock({ isStill: true });
let webhooks: WebhookGateway;

beforeAll(async () => {
  webhooks = await startWebhookGateway(clock);
}, 60_000);
afterAll(() => webhooks?.[Symbol.asyncDispose]());

/** Returns the names of the secrets with which both official verifiers accept a delivery at its time. */
function acceptedBy({ headers, body }: Arrival, secrets: Readonly<Record<string, string>>): string[] {
  const [ours, standard] = [String(headers["x-service-signature"]), String(headers["webhook-signature"])];
  const [id, timestamp] = [String(headers["webhook-id"]), Number(headers["webhook-timestamp"])];
  const accepts = (secret: string): boolean => {
    try {
      Stripe.webhooks.constructEvent(body, ours, secret, 300, undefined, timestamp * 1_000);
    } catch {
      return false;
    }
    return true;
  };
  // The standardwebhooks verifier only uses the system clock, so the expected signature is computed instead.
  const isStandard = (secret: string): boolean =>
    standard.split(" ").includes(new Webhook(secret).sign(id, new Date(timestamp * 1_000), body));
  const names = Object.keys(secrets);
  const accepted = names.filter((name) => accepts(secrets[name] ?? ""));
  expect(names.filter((name) => isStandard(secrets[name] ?? ""))).toEqual(accepted);
  return accepted;
}

test("the newest two secrets sign for 24 hours after a rotation, then only the newest", async () => {
  const { endpoints } = webhooks;
  const { rest, path: to } = await webhooks.newAccount();
  const { body: made } = await rest("/v1/webhooks", { url: endpoints.url(to) });
  const path = `/v1/webhooks/${made.id}`;
  const rotate = async (): Promise<string> => (await rest(`${path}/rotate-secret`, {})).body.secret;
  const sendTest = async (): Promise<Arrival> => {
    const { event_id } = (await rest(`${path}/test`, {})).body;
    await expect.poll(() => endpoints.arrivals.at(-1)?.eventId, { timeout: 20_000 }).toBe(event_id);
    const [arrival] = endpoints.arrivals.splice(0);
    if (!arrival) throw new Error("no test delivery was received");
    return arrival;
  };
  const secrets: Record<string, string> = { first: made.secret };
  expect(acceptedBy(await sendTest(), secrets)).toEqual(["first"]);
  secrets.second = await rotate();
  expect(acceptedBy(await sendTest(), secrets)).toEqual(["first", "second"]);
  clock.advance(day / 2);
  secrets.third = await rotate();
  expect(acceptedBy(await sendTest(), secrets)).toEqual(["second", "third"]);
  clock.advance(day - 1);
  expect(acceptedBy(await sendTest(), secrets)).toEqual(["second", "third"]);
  clock.advance(1);
  expect(acceptedBy(await sendTest(), secrets)).toEqual(["third"]);
});
