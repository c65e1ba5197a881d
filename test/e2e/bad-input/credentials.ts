import { expect, test } from "vitest";
import { addAccount, type KeyRow, strangeKey } from "../support/accounts.ts";
import { expectProblem, type Received, send } from "../support/problem.ts";
import { type Choose, type Endpoint, endpoints, type GetScene, kindOf, pathOf, type Scene } from "./scene.ts";

const yesterday = new Date(Date.now() - 24 * 3_600_000);

/** Less than a day ago, since a sweep revokes keys that expired earlier. */
const anHourAgo = new Date(Date.now() - 3_600_000);

/** Endpoints that need a key. */
const guarded = endpoints.filter(({ scope }) => scope !== "");

const requestTo = (endpoint: Endpoint, { sessionId }: Scene) => ({
  method: endpoint.verb,
  path: pathOf(endpoint, sessionId),
  ...("body" in endpoint && { body: endpoint.body }),
});

/** Credentials that every endpoint refuses. */
export function bearerTests(scene: GetScene, choose: Choose): void {
  const bad: readonly (readonly [why: string, slug: string, authorization: () => string | null | Promise<string>])[] = [
    ["no Authorization", "unauthorized", () => null],
    ["an empty Authorization", "unauthorized", () => ""],
    ["another scheme", "unauthorized", () => "Basic cGlsb3Q6aG91c2U="],
    ["Bearer without a key", "unauthorized", () => "Bearer "],
    ["a key without Bearer", "unauthorized", () => scene().service.key],
    ["two words after Bearer", "unauthorized", () => `Bearer ${scene().service.key} x`],
    ["another prefix", "invalid-key", () => `Bearer sk_${scene().service.key.slice(4)}`],
    ["a truncated key", "invalid-key", () => `Bearer ${scene().service.key.slice(0, -1)}`],
    ["an unknown key", "invalid-key", () => `Bearer ${strangeKey()}`],
    ["a known key with another secret", "invalid-key", () => `Bearer ${withOtherSecret(scene().service.key)}`],
    ["a revoked key", "revoked-key", () => bearerOf({ revokedAt: yesterday })],
    ["an expired key", "expired-key", () => bearerOf({ expiresAt: anHourAgo })],
    [
      "a revoked key that has expired, too",
      "revoked-key",
      () => bearerOf({ revokedAt: yesterday, expiresAt: yesterday }),
    ],
  ];
  const bearerOf = async (row: KeyRow) => `Bearer ${await addAccount(scene().service, row)}`;

  test.each(bad)("%s is refused with %s at every endpoint that needs a key", async (_, slug, authorizationOf) => {
    const authorization = await authorizationOf();
    for (const endpoint of choose(guarded, kindOf)) {
      const answer = await send(scene().service, { ...requestTo(endpoint, scene()), headers: { authorization } });
      expectProblem(answer, { status: 401, slug });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(answer.headers.get("x-ratelimit-limit")).toBe("60");
    }
  });
}

/** Requests that fail for lack of a scope, or because of a limit. */
export function credentialTests(scene: GetScene): void {
  test("a key without the required scope is forbidden, and the detail names the scope", async () => {
    const { service } = scene();
    // A free account's bucket has too few tokens for all endpoints.
    const keyWith = (scope: string) => addAccount(service, { tier: "enterprise", scopes: [scope] });
    const reader = { url: service.url, key: await keyWith("sessions:read") };
    const payer = { url: service.url, key: await keyWith("billing:read") };
    for (const endpoint of guarded) {
      const expected = {
        status: 403,
        slug: "forbidden",
        detail: `the key lacks the scope ${endpoint.scope}: use a key that has this scope`,
      };
      const request = requestTo(endpoint, scene());
      if (endpoint.scope !== "billing:read") expectProblem(await send(payer, request), expected);
      if (endpoint.scope !== "sessions:read") expectProblem(await send(reader, request), expected);
    }
    expect((await send(reader, { path: "/v1/sessions" })).status).toBe(200);
  });

  test("an empty bucket refuses requests with the bucket, the tier and the delay", async () => {
    const { service } = scene();
    const free = { url: service.url, key: await addAccount(service) };
    const { received, refused } = await sendUntilRefused(() => send(free, { path: "/v1/sessions" }));
    expect(received).toBeGreaterThanOrEqual(60);
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBe(1);
    expectProblem(refused, {
      status: 429,
      slug: "rate-limited",
      detail: 'rate limit "global" of tier free exceeded',
      extensions: { retry_after_seconds: seconds },
    });
    expect(refused.headers.get("x-ratelimit-bucket")).toBe("global");
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("0");
  });

  test("a refused create consumes no token of its bucket", async () => {
    const { service } = scene();
    const free = { url: service.url, key: await addAccount(service) };
    const reader = { url: service.url, key: await addAccount(service, { scopes: ["sessions:read"] }) };
    const bodies = [{ archetype: "none" }, { archetype: 1 }, "{", { labels: { "": "" } }, { timeout_seconds: 901 }];
    for (const body of [...bodies, ...bodies]) {
      const { status, headers } = await send(free, { path: "/v1/sessions", body });
      expect([body, status, headers.get("x-ratelimit-bucket"), headers.get("x-ratelimit-remaining")]).toEqual([
        body,
        400,
        "sessions:create",
        "5",
      ]);
      expect((await send(reader, { path: "/v1/sessions", body: {} })).status).toBe(403);
    }
  });

  const guessFrom = (address: string) => {
    const guesser = { url: scene().service.url, key: strangeKey() };
    return send(guesser, { path: "/v1/sessions", headers: { "x-forwarded-for": address } });
  };

  test("concurrent guesses share one bucket, and a valid key passes even if the bucket is empty", async () => {
    const { service } = scene();
    const address = "192.0.2.1";
    const newcomer = { url: service.url, key: await addAccount(service) };
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: 200 }, () => guessFrom(address)));
    const refilled = Math.ceil((performance.now() - began) / 1_000);
    const told = answers.filter(({ status }) => status === 401).length;
    expect(told).toBeGreaterThan(0);
    expect(told).toBeLessThanOrEqual(60 + refilled);
    const { refused } = await sendUntilRefused(() => guessFrom(address));
    expectProblem(refused, { status: 429, slug: "rate-limited", detail: 'rate limit "global" of your address' });
    // The key is not cached yet, and the address has no token left.
    const headers = { "x-forwarded-for": address };
    expect((await send(newcomer, { path: "/v1/sessions", headers })).status).toBe(200);
    // The address may have a token again by now.
    const { received } = await sendUntilRefused(() =>
      send({ ...newcomer, key: "none" }, { path: "/v1/sessions", headers }),
    );
    expect(received).toBeLessThan(60);
  });

  test("all addresses of an IPv6 network share one bucket", async () => {
    const { received } = await sendUntilRefused((count) => guessFrom(`2001:db8:0:1::${count.toString(16)}`));
    expect(received).toBeGreaterThanOrEqual(60);
    expect((await guessFrom("2001:db8:0:2::1")).status).toBe(401);
  });

  test("unknown paths and wrong methods consume the account's tokens if a valid key is sent", async () => {
    const { service } = scene();
    const address = "192.0.2.2";
    const headers = { "x-forwarded-for": address };
    const limits = new Set<string | null>();
    for (let sent = 0; sent < 40; sent += 1) {
      for (const request of [{ path: "/v1/nothing" }, { path: "/v1/sessions", method: "PUT" }]) {
        const answer = await send(service, { ...request, headers });
        expect([404, 405]).toContain(answer.status);
        limits.add(answer.headers.get("x-ratelimit-limit"));
      }
    }
    expect([...limits]).toEqual(["30000"]);
    expect((await guessFrom(address)).status).toBe(401);
    const stranger = () => send(service, { path: "/v1/nothing", headers: { ...headers, authorization: null } });
    const { refused } = await sendUntilRefused(stranger);
    expectProblem(refused, {
      status: 429,
      slug: "rate-limited",
      detail: 'rate limit "global" of your address exceeded',
    });
  });

  test("a tier limits concurrent sessions", async () => {
    const { service } = scene();
    const free = { url: service.url, key: await addAccount(service) };
    const first = await send(free, { path: "/v1/sessions", body: {} });
    expect([first.status, first.headers.get("x-ratelimit-remaining")]).toEqual([201, "4"]);
    const refused = await send(free, { path: "/v1/sessions", body: {} });
    expect(refused.headers.get("x-ratelimit-remaining")).toBe("4");
    expectProblem(refused, {
      status: 429,
      slug: "concurrency-limit",
      extensions: { current_sessions: 1, limit: 1 },
    });
    expectProblem(await send(free, { path: "/v1/sessions", body: { timeout_seconds: 901 } }), {
      status: 400,
      slug: "validation-failed",
      detail: "timeout_seconds: must be at most 900 on tier free",
    });
    await send(free, { method: "DELETE", path: `/v1/sessions/${JSON.parse(first.text).id}` });
  });
}

function withOtherSecret(key: string): string {
  return key.slice(0, -1) + (key.endsWith("0") ? "1" : "0");
}

/** Sends requests until the bucket is empty. One token is added each second, so a slow machine needs more requests. */
async function sendUntilRefused(
  sendOne: (count: number) => Promise<Received>,
): Promise<{ received: number; refused: Received }> {
  for (let received = 0; received < 1_000; received += 1) {
    const refused = await sendOne(received);
    if (refused.status === 429) return { received, refused };
  }
  throw new Error("the bucket is never empty");
}
