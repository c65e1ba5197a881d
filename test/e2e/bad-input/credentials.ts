import { expect, test } from "vitest";
import { addAccount, type KeyRow, strangeKey } from "../support/accounts.ts";
import { expectProblem, send } from "../support/problem.ts";
import { endpoints, type GetScene, pathOf } from "./scene.ts";

const yesterday = new Date(Date.now() - 24 * 3_600_000);

/** Who may not, or not so often. */
export function credentialTests(scene: GetScene): void {
  const requestTo = (endpoint: (typeof endpoints)[number]) => ({
    method: endpoint.verb,
    path: pathOf(endpoint, scene().sessionId),
    ...("body" in endpoint && { body: endpoint.body }),
  });

  const bad: readonly (readonly [why: string, slug: string, authorization: () => string | null | Promise<string>])[] = [
    ["no Authorization", "unauthorized", () => null],
    ["an empty Authorization", "unauthorized", () => ""],
    ["another scheme", "unauthorized", () => "Basic cGlsb3Q6aG91c2U="],
    ["Bearer without a key", "unauthorized", () => "Bearer "],
    ["a key alone", "unauthorized", () => scene().service.key],
    ["two words after Bearer", "unauthorized", () => `Bearer ${scene().service.key} x`],
    ["another prefix", "invalid-key", () => `Bearer sk_${scene().service.key.slice(4)}`],
    ["a key cut short", "invalid-key", () => `Bearer ${scene().service.key.slice(0, -1)}`],
    ["an unknown key", "invalid-key", () => `Bearer ${strangeKey()}`],
    ["a known key with another secret", "invalid-key", () => `Bearer ${withOtherSecret(scene().service.key)}`],
    ["a revoked key", "revoked-key", () => bearerOf({ revokedAt: yesterday })],
    ["an expired key", "expired-key", () => bearerOf({ expiresAt: yesterday })],
    [
      "a revoked key that has expired, too",
      "revoked-key",
      () => bearerOf({ revokedAt: yesterday, expiresAt: yesterday }),
    ],
  ];
  const bearerOf = async (row: KeyRow) => `Bearer ${await addAccount(scene().service, row)}`;

  test.each(bad)("%s is %s at every endpoint", async (_, slug, authorizationOf) => {
    const authorization = await authorizationOf();
    for (const endpoint of endpoints) {
      const answer = await send(scene().service, { ...requestTo(endpoint), headers: { authorization } });
      expectProblem(answer, { status: 401, slug });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(answer.headers.get("x-ratelimit-limit")).toBe("60");
    }
  });

  test("a key without the scope is forbidden, and told which it lacks", async () => {
    const { service } = scene();
    const reader = { url: service.url, key: await addAccount(service, { scopes: ["sessions:read"] }) };
    const none = { url: service.url, key: await addAccount(service, { scopes: ["profiles:write"] }) };
    for (const endpoint of endpoints) {
      const isRead = endpoint.verb === "GET" || endpoint.path.endsWith("/capture");
      const scope = isRead ? "sessions:read" : "sessions:write";
      const detail = `the key lacks the scope ${scope}`;
      expectProblem(await send(none, requestTo(endpoint)), { status: 403, slug: "forbidden", detail });
      const answer = await send(reader, requestTo(endpoint));
      if (!isRead) {
        expectProblem(answer, { status: 403, slug: "forbidden", detail });
      }
    }
    expect((await send(reader, { path: "/v1/sessions" })).status).toBe(200);
  });

  test("an empty bucket is rate-limited, with bucket, tier and time to wait", async () => {
    const { service } = scene();
    const free = { url: service.url, key: await addAccount(service) };
    const create = () => send(free, { path: "/v1/sessions", body: { archetype: "none" } });
    for (const remaining of ["4", "3", "2", "1", "0"]) {
      const { status, headers } = await create();
      expect([status, headers.get("x-ratelimit-limit"), headers.get("x-ratelimit-remaining")]).toEqual([
        400,
        "5",
        remaining,
      ]);
    }
    const refused = await create();
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
    expectProblem(refused, {
      status: 429,
      slug: "rate-limited",
      detail: "bucket sessions:create of tier free is empty",
      extensions: { retry_after_seconds: seconds },
    });
    expect(refused.headers.get("x-ratelimit-bucket")).toBe("sessions:create");
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
    expect((await send(free, { path: "/v1/sessions" })).status).toBe(200);
  });

  test("guessing keys empties the bucket of the address alone: a valid key passes from there", async () => {
    const { service } = scene();
    const headers = { "x-forwarded-for": "192.0.2.1" };
    const guess = () => send({ url: service.url, key: strangeKey() }, { path: "/v1/sessions", headers });
    const statuses: number[] = [];
    while (statuses.length < 80 && statuses.at(-1) !== 429) {
      statuses.push((await guess()).status);
    }
    expect(statuses.length).toBeGreaterThan(60);
    expectProblem(await guess(), { status: 429, slug: "rate-limited", detail: "bucket global of your address" });
    expect((await send(service, { path: "/v1/sessions", headers })).status).toBe(200);
  });

  test("a tier's concurrent sessions are a limit", async () => {
    const { service } = scene();
    const free = { url: service.url, key: await addAccount(service) };
    const first = await send(free, { path: "/v1/sessions", body: {} });
    expect(first.status).toBe(201);
    expectProblem(await send(free, { path: "/v1/sessions", body: {} }), {
      status: 429,
      slug: "concurrency-limit",
      extensions: { current_sessions: 1, limit: 1 },
    });
    expectProblem(await send(free, { path: "/v1/sessions", body: { timeout_seconds: 901 } }), {
      status: 400,
      slug: "validation-failed",
      detail: "timeout_seconds: is at most 900 on tier free",
    });
    await send(free, { method: "DELETE", path: `/v1/sessions/${JSON.parse(first.text).id}` });
  });
}

function withOtherSecret(key: string): string {
  return key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
}
