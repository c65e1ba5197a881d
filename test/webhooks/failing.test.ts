import { afterAll, beforeAll, expect, test } from "vitest";
import { createFailingWatch } from "../../src/webhooks/closing.ts";
import { mailAbout } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";
import { causeEvent, type Endpoints, readLog, register, startEndpoints } from "./scene.ts";

const hour = 3_600_000;

let gateway: PeopleGateway;
let endpoints: Endpoints;

beforeAll(async () => {
  [gateway, endpoints] = await Promise.all([
    startPeopleGateway({ WEBHOOK_ALLOW: "127.0.0.1" }),
    startEndpoints(({ path }) => (path === "/sound" ? 200 : 500)),
  ]);
}, 60_000);
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await endpoints?.[Symbol.asyncDispose]();
});

test("an endpoint that fails for 5 days is deactivated, with an audit entry and an e-mail to its owner", async () => {
  const { rest: person, email, accountId } = await gateway.signUp();
  // Polling would soon empty the rate limit bucket of a free account.
  await gateway.admin("set-tier", "--account", accountId, "--tier", "enterprise");
  // A login would expire within the 5 days.
  const { body: key } = await person("/v1/api-keys", { name: "webhooks" });
  const rest = restClient({ url: gateway.url, key: key.key });
  const failing = await register(rest, endpoints.url("/failing"), { events: ["api_key.revoked"] });
  const sound = await register(rest, endpoints.url("/sound"), { events: ["api_key.revoked"] });
  /** Advances the clock, then causes a delivery whose first attempt fails. */
  async function failAfter(hours: number): Promise<void> {
    const attempted = async () => (await readLog(rest, failing)).filter(({ attempts }) => attempts.length > 0).length;
    const before = await attempted();
    gateway.pass(hours * hour);
    await causeEvent(rest);
    await expect.poll(attempted, { timeout: 20_000 }).toBeGreaterThan(before);
  }
  const isActive = async (id: string) => (await rest(`/v1/webhooks/${id}`)).body.active;
  await failAfter(0);
  await failAfter(11);
  await failAfter(108);
  // 119 hours have passed since the first failure, and the failures are more than 12 hours apart.
  await expect(isActive(failing)).resolves.toBe(true);
  gateway.pass(hour + 5_000);
  await expect.poll(() => isActive(failing), { timeout: 20_000 }).toBe(false);
  const { body: endpoint } = await rest(`/v1/webhooks/${failing}`);
  const failed = async () => (await rest(`/v1/webhooks/${failing}`)).body.delivery_counts.failed;
  await expect.poll(failed, { timeout: 20_000 }).toBe(0);
  expect(endpoint.consecutive_failures).toBeGreaterThanOrEqual(3);
  expect(await isActive(sound)).toBe(true);
  const { body: audit } = await rest("/v1/account/audit-log?action=webhook.deactivate");
  expect(audit.data).toMatchObject([{ action: "webhook.deactivate", actor: { type: "system" } }]);
  const mail = await mailAbout(gateway.mailbox, email, "A webhook was deactivated");
  expect(mail.text).toMatch(/^Hello .+,\n\nThe webhook .+ has failed for 5 days/);
}, 90_000);

test("an endpoint is deactivated only after failing for 5 days with failures at least 12 hours apart", async () => {
  const { rest } = await gateway.signUp();
  const id = await register(rest, endpoints.url("/rarely-used"), { events: ["api_key.revoked"] });
  const watch = createFailingWatch(gateway.app);
  const isActiveWith = async (apartMs: number, failedFor = 200 * hour) => {
    const since = gateway.now() - failedFor;
    const failures = { failing_since: new Date(since), last_failure_at: new Date(since + apartMs) };
    await gateway.app.db.sql.updateTable("webhook_endpoints").set(failures).where("id", "=", id).execute();
    await watch.run();
    return (await rest(`/v1/webhooks/${id}`)).body.active;
  };
  expect([await isActiveWith(0), await isActiveWith(12 * hour - 60_000)]).toEqual([true, true]);
  expect(await isActiveWith(13 * hour, 120 * hour - 60_000)).toBe(true);
  expect(await isActiveWith(12 * hour + 60_000, 120 * hour + 60_000)).toBe(false);
});
