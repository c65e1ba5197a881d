import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Answer, Rest } from "../support/rest.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const day = 86_400_000;
let now = Date.now();
let gateway: TestGateway;
/** Client of a new account for each test. */
let rest: Rest;

beforeAll(async () => {
  gateway = await startTestGateway({}, { clock: { now: () => now } });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());
beforeEach(async () => {
  now = Math.max(now, Date.now());
  rest = gateway.as(await gateway.addAccount());
});

const url = "https://hooks.example.com/pilothouse";
const create = (fields: object = {}, init: RequestInit = {}) => rest("/v1/webhooks", { url, ...fields }, init);
const send = (method: string, path: string, body?: unknown) => rest(path, body, { method });
const change = (id: string, fields: object) => send("PATCH", `/v1/webhooks/${id}`, fields);
const rotate = (id: string) => rest(`/v1/webhooks/${id}/rotate-secret`, {});
const inMs = (ms: number) => new Date(now + ms).toISOString();

/** Slug of a problem, or the status of a successful response. */
const outcome = ({ status, body }: Answer) => (status < 400 ? status : String(body.type).split("/").at(-1));

/** Creates endpoints one after the other. */
async function createMany(count: number, fields: object = {}): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let index = 0; index < count; index += 1) answers.push(await create(fields));
  return answers;
}

describe("an endpoint", () => {
  test("shows its secret once and only the prefix afterwards", async () => {
    const { status, body } = await create({ description: "Production", events: ["session.failed"] });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^whk_[0-9a-z]{26}$/),
      url,
      events: ["session.failed"],
      description: "Production",
      active: true,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
      secret_prefix: body.secret.slice(0, 12),
      consecutive_failures: 0,
      delivery_counts: { pending: 0, delivered: 0, failed: 0, dlq: 0 },
      replayed_count: 0,
      created_at: inMs(0),
      updated_at: inMs(0),
      grace_expires_at: null,
    });
    const { secret, ...shown } = body;
    expect((await rest(`/v1/webhooks/${body.id}`)).body).toEqual(shown);
    expect((await rest("/v1/webhooks")).body).toEqual({ data: [shown], has_more: false, next_cursor: null });
  });

  test.each([[undefined], [[]], [["*"]]])("receives all event types with events %j", async (events) => {
    expect((await create({ events })).body.events).toEqual(["*"]);
  });

  test("is created once if its request is repeated with an Idempotency-Key, with the same secret", async () => {
    const init = { headers: { "idempotency-key": "once" } };
    const [first, second] = [await create({}, init), await create({}, init)];
    expect(second.body).toEqual(first.body);
    expect(second.headers.get("idempotency-replayed")).toBe("true");
    expect((await rest("/v1/webhooks")).body.data).toHaveLength(1);
  });

  test.each([
    ["an unknown type", ["session.completed", "session.renamed"], "events[1]", /^must be one of .*crypto/],
    ["a type that only streams show", ["session.control_changed"], "events[0]", /^must be one of /],
    ["the type of test deliveries", ["test.ping"], "events[0]", /^must be one of /],
    ["all types and another one", ["session.failed", "*"], "events[1]", /^must be the only entry$/],
    ["a type twice", ["session.failed", "session.failed"], "events", /^must not have duplicate items$/],
  ])("cannot subscribe to %s", async (_, events, field, message) => {
    const { id } = (await create()).body;
    for (const answer of [await create({ events }), await change(id, { events })]) {
      expect(outcome(answer)).toBe("validation-failed");
      expect(answer.body.errors).toEqual([{ field, message: expect.stringMatching(message) }]);
    }
  });

  test.each([
    ["http", "http://hooks.example.com/"],
    ["credentials in the URL", "https://user:password@hooks.example.com/"],
    ["an invalid URL", "hooks"],
    ["a mail server port", "https://hooks.example.com:25/"],
    ["this machine", "https://127.0.0.1/"],
    ["a cloud metadata address", "https://[::ffff:169.254.169.254]/"],
  ])("cannot use %s", async (_, wrong) => {
    const { id } = (await create()).body;
    for (const answer of [await create({ url: wrong }), await change(id, { url: wrong })]) {
      expect(outcome(answer)).toBe("bad-request");
      expect(answer.body.errors).toEqual([{ field: "url", message: expect.any(String) }]);
    }
    expect((await rest(`/v1/webhooks/${id}`)).body.url).toBe(url);
  });

  test("may use a name that does not resolve yet", async () => {
    expect(outcome(await create({ url: "https://not-there-yet.invalid:8443/hooks" }))).toBe(201);
  });
});

describe("a PATCH", () => {
  test("changes the given fields and clears those that are null", async () => {
    const { id } = (await create({ description: "Old", events: ["session.failed"] })).body;
    now += 1_000;
    const changed = await change(id, { url: "https://other.example.com/", active: false });
    expect(changed.body).toMatchObject({
      url: "https://other.example.com/",
      events: ["session.failed"],
      description: "Old",
      active: false,
      updated_at: inMs(0),
    });
    expect(changed.body).not.toHaveProperty("secret");
    const cleared = await change(id, { description: null, events: null });
    expect(cleared.body).toMatchObject({ description: "", events: ["*"], active: false });
    expect((await change(id, { events: ["api_key.revoked"] })).body.events).toEqual(["api_key.revoked"]);
    expect((await change(id, { url: null })).body.errors).toEqual([{ field: "url", message: "cannot be cleared" }]);
    expect((await change(id, { active: null })).body.errors).toEqual([
      { field: "active", message: "cannot be cleared" },
    ]);
  });
});

describe("an account", () => {
  test("has at most 10 active endpoints", async () => {
    const active = await createMany(10);
    expect(active.map(outcome)).toEqual(Array(10).fill(201));
    const eleventh = await create();
    expect(outcome(eleventh)).toBe("tier-limit");
    expect(eleventh.body).toMatchObject({ status: 429, current_webhooks: 10, limit: 10 });
    const [first] = active;
    await change(first?.body.id, { active: false });
    expect(outcome(await create())).toBe(201);
    expect(outcome(await change(first?.body.id, { active: true }))).toBe("tier-limit");
    expect(outcome(await change(first?.body.id, { description: "x" }))).toBe(200);
  });

  test("has at most 100 endpoints, active or not", async () => {
    const makeInactive = async (): Promise<void> => {
      for (let count = 0; count < 10; count += 1) await change((await create()).body.id, { active: false });
    };
    await Promise.all(Array.from({ length: 10 }, makeInactive));
    const full = await create();
    expect(outcome(full)).toBe("tier-limit");
    expect(full.body).toMatchObject({ current_webhooks: 100, limit: 100 });
    const { data } = (await rest("/v1/webhooks?limit=100")).body;
    expect(data).toHaveLength(100);
    expect(outcome(await send("DELETE", `/v1/webhooks/${data[0].id}`))).toBe(204);
    expect(outcome(await create())).toBe(201);
  });

  test("cannot exceed 10 active endpoints by concurrent requests", async () => {
    await createMany(9);
    const answers = await Promise.all([create(), create(), create()]);
    expect(answers.map(outcome).sort()).toEqual([201, "tier-limit", "tier-limit"]);
  });

  test("lists its endpoints in pages, newest first, filtered by active", async () => {
    const made = (await createMany(5)).map(({ body }) => String(body.id)).reverse();
    await change(made[2] ?? "", { active: false });
    const first = (await rest("/v1/webhooks?limit=3")).body;
    const second = (await rest(`/v1/webhooks?limit=3&cursor=${first.next_cursor}`)).body;
    const idsOf = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);
    expect([...idsOf(first), ...idsOf(second)]).toEqual(made);
    expect([first.has_more, second.has_more]).toEqual([true, false]);
    expect(idsOf((await rest("/v1/webhooks?active=false")).body)).toEqual([made[2]]);
    expect(outcome(await rest("/v1/webhooks?cursor=abc"))).toBe("validation-failed");
  });

  test("cannot see endpoints of another account", async () => {
    const { id } = (await create()).body;
    const own = rest;
    rest = gateway.as(await gateway.addAccount());
    const answers = [
      await rest(`/v1/webhooks/${id}`),
      await change(id, { active: false }),
      await send("DELETE", `/v1/webhooks/${id}`),
      await rotate(id),
      await rest(`/v1/webhooks/${id}/test`, {}),
      await rest(`/v1/webhooks/${id}/deliveries`),
      await rest(`/v1/webhooks/${id}/replay-failed`, { since: inMs(-day) }),
    ];
    expect(answers.map(outcome)).toEqual(answers.map(() => "not-found"));
    expect((await rest("/v1/webhooks")).body.data).toEqual([]);
    expect((await own(`/v1/webhooks/${id}`)).body.active).toBe(true);
  });

  test("needs the read scope and the write scope", async () => {
    rest = gateway.as(await gateway.addAccount({ scopes: ["webhooks:read"] }));
    expect(outcome(await rest("/v1/webhooks"))).toBe(200);
    expect(outcome(await create())).toBe("forbidden");
  });
});

describe("a rotation", () => {
  test("shows the new secret once, and the prefix of the previous one, which is valid for 24 hours", async () => {
    const { id, secret_prefix: before } = (await create()).body;
    const { status, body } = await rotate(id);
    expect(status).toBe(200);
    expect(body).toEqual({
      id,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
      secret_prefix: body.secret.slice(0, 12),
      prev_secret_prefix: before,
      grace_expires_at: inMs(day),
    });
    expect(body.secret_prefix).not.toBe(before);
    const { body: shown } = await rest(`/v1/webhooks/${id}`);
    expect(shown).toMatchObject({ secret_prefix: body.secret_prefix, grace_expires_at: inMs(day) });
    expect(shown).not.toHaveProperty("secret");
    now += day;
    expect((await rest(`/v1/webhooks/${id}`)).body.grace_expires_at).toBeNull();
  });

  test("can be repeated within the 24 hours, which restarts them", async () => {
    const { id } = (await create()).body;
    const first = (await rotate(id)).body;
    now += day / 2;
    const second = (await rotate(id)).body;
    expect(second).toMatchObject({ prev_secret_prefix: first.secret_prefix, grace_expires_at: inMs(day) });
  });
});

test("a deleted endpoint answers not-found", async () => {
  const { id } = (await create()).body;
  expect(outcome(await send("DELETE", `/v1/webhooks/${id}`))).toBe(204);
  expect(outcome(await rest(`/v1/webhooks/${id}`))).toBe("not-found");
  expect(outcome(await rest(`/v1/webhooks/${id}/deliveries`))).toBe("not-found");
  expect(outcome(await send("DELETE", `/v1/webhooks/${id}`))).toBe("not-found");
});

test("every change is in the audit log, without secrets", async () => {
  const { id, secret } = (await create()).body;
  const rotated = (await rotate(id)).body;
  const { delivery_id } = (await rest(`/v1/webhooks/${id}/test`, {})).body;
  await rest(`/v1/webhooks/${id}/replay-failed`, { since: inMs(-day) });
  await change(id, { description: "x" });
  await change(id, { events: ["session.renamed"] });
  await send("DELETE", `/v1/webhooks/${id}`);
  const { body } = await rest("/v1/account/audit-log");
  const entries: { action: string; subject_id: string; details: object }[] = body.data;
  expect(entries.reverse().map(({ action, details }) => [action, details])).toEqual([
    ["webhook.create", { url, events: ["*"] }],
    ["webhook.rotate_secret", { url }],
    ["webhook.test", { delivery_id }],
    ["webhook.replay_failed", { count: 0 }],
    ["webhook.update", { changed: ["description"] }],
    ["webhook.delete", { url }],
  ]);
  expect(new Set(entries.map(({ subject_id }) => subject_id))).toEqual(new Set([id]));
  expect(JSON.stringify(body)).not.toContain(secret.slice(6));
  expect(JSON.stringify(body)).not.toContain(rotated.secret.slice(6));
});
