import { crc32 } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Answer, Rest } from "../../support/rest.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";

const hour = 3_600_000;

let now = Date.now();
let gateway: TestGateway;
/** Each test has its own account. */
let rest: Rest;

beforeAll(async () => {
  gateway = await startTestGateway({ TRUSTED_PROXIES: "127.0.0.1" }, { clock: { now: () => now } });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());
beforeEach(async () => {
  rest = gateway.as(await gateway.addAccount());
});

const create = (body: object = {}, as = rest): Promise<Answer> => as("/v1/api-keys", { name: "CI", ...body });
const rotate = (id: string, as = rest): Promise<Answer> => as(`/v1/api-keys/${id}/rotate`, {});
const revoke = (id: string, as = rest): Promise<Answer> => as(`/v1/api-keys/${id}`, undefined, { method: "DELETE" });
const list = async (query = ""): Promise<Record<string, unknown>[]> =>
  (await rest(`/v1/api-keys?limit=100${query}`)).body.data;
const slug = ({ status, body }: Answer): unknown[] => [status, body.type?.split("/").at(-1)];
/** Status and slug of a request with a key. */
const tryKey = async (key: string, from = "198.51.100.7"): Promise<unknown[]> =>
  slug(await gateway.as(key)("/v1/sessions", undefined, { headers: { "x-forwarded-for": from } }));

const good = [200, undefined];
const forbidden = [403, "forbidden"];

test("a key is shown once, and later without its secret", async () => {
  const { status, body, headers } = await create({ scopes: ["sessions:write", "sessions:read"] });
  expect([status, headers.get("cache-control")]).toEqual([201, "no-store"]);
  expect(await tryKey(body.key)).toEqual(good);
  const { key, ...shown } = body;
  expect(shown).toMatchObject({
    name: "CI",
    key_prefix: key.slice(0, 16),
    scopes: ["sessions:read", "sessions:write"],
    status: "active",
    addresses: [],
    expires_at: null,
    revoked_at: null,
  });
  expect((await list())[0]).toEqual(shown);
  expect(await list("&status=revoked")).toEqual([]);
});

test("a key ends with its checksum, which may be omitted", async () => {
  const { key } = (await create()).body;
  expect(key).toMatch(/^phk_[0-9a-hjkmnp-tv-z]{26}_[0-9a-hjkmnp-tv-z]{47}$/);
  const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
  const read = [...key.slice(-7)].reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0);
  expect(read).toBe(crc32(key.slice(0, -7)));
  expect(await tryKey(key.slice(0, -7))).toEqual(good);
  const mistyped = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
  expect(await tryKey(mistyped)).toEqual([401, "invalid-key"]);
});

test("a repeated request returns the same key", async () => {
  const headers = { "idempotency-key": "once" };
  const [one, two] = [
    await rest("/v1/api-keys", { name: "CI" }, { headers }),
    await rest("/v1/api-keys", { name: "CI" }, { headers }),
  ];
  expect(two.body).toEqual(one.body);
  expect(await list()).toHaveLength(2);
});

describe("a key made with another key", () => {
  test("has no scope that its creator lacks", async () => {
    const scopes = ["api_keys:write", "sessions:read"];
    const maker = gateway.as((await create({ scopes })).body.key);
    expect((await create({}, maker)).body.scopes).toEqual(["sessions:read", "api_keys:write"]);
    expect(slug(await create({ scopes: ["sessions:write"] }, maker))).toEqual(forbidden);
  });

  test("expires no later than its creator", async () => {
    const end = new Date(now + hour).toISOString();
    const maker = gateway.as((await create({ expires_at: end })).body.key);
    expect((await create({}, maker)).body.expires_at).toBe(end);
    expect((await create({ expires_at: new Date(now + hour / 2) }, maker)).status).toBe(201);
    expect(slug(await create({ expires_at: new Date(now + 2 * hour) }, maker))).toEqual(forbidden);
    expect(slug(await create({ expires_at: new Date(Date.now() - hour) }))).toEqual([400, "validation-failed"]);
  });

  test("is valid only from its creator's addresses", async () => {
    const addresses = ["198.51.100.0/24", "2001:db8::/32"];
    const { key } = (await create({ addresses })).body;
    const from = (body: object) =>
      gateway.as(key)("/v1/api-keys", { name: "CI", ...body }, { headers: { "x-forwarded-for": "198.51.100.7" } });
    expect((await from({})).body.addresses).toEqual(addresses);
    expect((await from({ addresses: ["198.51.100.128/25"] })).status).toBe(201);
    for (const wider of ["198.51.0.0/16", "203.0.113.7", "2001:db0::/28", "0.0.0.0/0"])
      expect(slug(await from({ addresses: [wider] }))).toEqual(forbidden);
  });
});

test("a key with an address list is forbidden from other addresses", async () => {
  const { key } = (await create({ addresses: ["198.51.100.0/24", "203.0.113.9", "2001:db8::/32"] })).body;
  for (const address of ["198.51.100.7", "203.0.113.9", "2001:db8:1::1", "::ffff:198.51.100.8"])
    expect([address, ...(await tryKey(key, address))]).toEqual([address, ...good]);
  for (const address of ["198.51.101.7", "203.0.113.8", "2001:db9::1", "127.0.0.1"])
    expect([address, ...(await tryKey(key, address))]).toEqual([address, ...forbidden]);
});

test.each(["198.51.100.0/33", "198.51.100", "example.com", "2001:db8::/129", "fe80::1%eth0", "1.2.3.4/"])(
  "%s is an invalid address range",
  async (address) => {
    const { status, body } = await create({ addresses: ["203.0.113.9", address] });
    expect([status, body.errors]).toEqual([
      400,
      [{ field: "addresses[1]", message: "must be an IP address or a network such as 203.0.113.0/24" }],
    ]);
  },
);

test("an account is limited to its tier's number of keys, without rotated, revoked and expired keys", async () => {
  rest = gateway.as(await gateway.addAccount({ tier: "free" }));
  const { id } = (await create()).body;
  const refused = await create();
  expect(slug(refused)).toEqual([429, "tier-limit"]);
  expect(refused.body).toMatchObject({ current_api_keys: 2, limit: 2 });
  const { body: successor } = await rotate(id);
  expect(slug(await create())).toEqual([429, "tier-limit"]);
  await revoke(successor.id);
  expect((await create({ expires_at: new Date(now + hour) })).status).toBe(201);
  now += hour;
  expect((await create()).status).toBe(201);
});

test("concurrent requests cannot exceed the limit of keys", async () => {
  rest = gateway.as(await gateway.addAccount({ tier: "personal" }));
  const answers = await Promise.all(Array.from({ length: 10 }, () => create()));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(4);
});

test("a rotated key stays valid for 24 hours, and its successor has the same properties", async () => {
  const { body: old } = await create({ scopes: ["sessions:read"], addresses: ["198.51.100.0/24"] });
  const { status, body } = await rotate(old.id);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    name: "CI",
    scopes: ["sessions:read"],
    prev_key_id: old.id,
    prev_key_prefix: old.key_prefix,
    grace_expires_at: new Date(now + 24 * hour).toISOString(),
  });
  expect(slug(await rotate(old.id))).toEqual([409, "conflict"]);
  const [after, before] = await list();
  expect(after).toMatchObject({ id: body.id, status: "active", addresses: ["198.51.100.0/24"], expires_at: null });
  expect(before).toMatchObject({ id: old.id, status: "expiring", rotated_to: body.id });
  expect([await tryKey(old.key), await tryKey(body.key)]).toEqual([good, good]);
  now += 24 * hour;
  expect([await tryKey(old.key), await tryKey(body.key)]).toEqual([[401, "expired-key"], good]);
  expect((await list("&status=expired")).map(({ id }) => id)).toEqual([old.id]);
});

test("a key has one successor when it is rotated many times at once", async () => {
  const { id } = (await create()).body;
  const answers = await Promise.all(Array.from({ length: 8 }, () => rotate(id)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)]);
});

test("a rotation does not extend a key, or the caller's rights", async () => {
  const end = new Date(now + hour).toISOString();
  const { body: old } = await create({ expires_at: end });
  const { body } = await rotate(old.id);
  expect(body.grace_expires_at).toBe(end);
  expect((await list())[0]).toMatchObject({ id: body.id, expires_at: end });
  const { body: wide } = await create();
  const narrow = gateway.as((await create({ scopes: ["api_keys:write"] })).body.key);
  const short = gateway.as((await create({ expires_at: end })).body.key);
  expect([slug(await rotate(wide.id, narrow)), slug(await rotate(wide.id, short))]).toEqual([forbidden, forbidden]);
});

test("a revoked key is rejected immediately, and a second revocation has no effect", async () => {
  const { body } = await create();
  expect(await tryKey(body.key)).toEqual(good);
  expect([(await revoke(body.id)).status, (await revoke(body.id)).status]).toEqual([204, 204]);
  expect(await tryKey(body.key)).toEqual([401, "revoked-key"]);
  expect(slug(await rotate(body.id))).toEqual([409, "conflict"]);
  const entries = (await rest(`/v1/account/audit-log?subject_id=${body.id}`)).body.data;
  expect(entries.map(({ action }: { action: string }) => action)).toEqual(["api_key.revoke", "api_key.create"]);
  const { app } = gateway.running;
  const told: unknown[] = [];
  await app.events.consume(
    `keys of the test ${body.id}`,
    1_000,
    async (_tx, batch) =>
      void told.push(...batch.filter(({ subject }) => subject === body.id).map(({ type, data }) => [type, data])),
  );
  expect(told).toEqual([
    ["api_key.revoked", expect.objectContaining({ api_key_id: body.id, name: "CI", key_prefix: body.key_prefix })],
  ]);
});

test("keys of another account are not found", async () => {
  const { id } = (await create()).body;
  const stranger = gateway.as(await gateway.addAccount());
  expect([slug(await rotate(id, stranger)), slug(await revoke(id, stranger))]).toEqual([
    [404, "not-found"],
    [404, "not-found"],
  ]);
  expect(slug(await revoke("key_none"))).toEqual([404, "not-found"]);
});

test("a key reports its last use, without a statement for each use", async () => {
  const { id, key } = (await create()).body;
  expect((await list())[0]).toMatchObject({ id, last_used_at: null });
  for (let use = 0; use < 3; use += 1) await tryKey(key);
  // Uses are written once a minute and when the gateway stops.
  await gateway.running.app.apiKeys.stop();
  gateway.running.app.apiKeys.start();
  expect((await list())[0]).toMatchObject({ id, last_used_at: new Date(now).toISOString() });
});
