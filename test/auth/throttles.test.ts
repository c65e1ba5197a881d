import { afterAll, beforeAll, expect, test } from "vitest";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { MfaService } from "../../src/gen/pilothouse/v1/mfa_pb.ts";
import { OAuthService } from "../../src/gen/pilothouse/v1/oauth_pb.ts";
import { ProfileService } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { freshEmail, tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type TransportName, transportNames } from "../support/transport-calls.ts";

const { signUp, logIn, verifyEmail, refresh } = AuthService.method;
const { requestMagicLink, consumeMagicLink, requestPasswordReset, confirmPasswordReset } = AuthService.method;
const { stepUp } = MfaService.method;
const password = "not the right password";

let gateway: PeopleGateway;
beforeAll(async () => {
  gateway = await startPeopleGateway();
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

async function countHashes(): Promise<number> {
  const metric = await gateway.app.metrics.getSingleMetric("pilothouse_password_hashes_total")?.get();
  return metric?.values[0]?.value ?? 0;
}

/** Tries passwords at an address, each from another network, alternating between the transports. */
async function guess(email: string, times: number): Promise<string[]> {
  const tries = Array.from({ length: times }, (_, index) => {
    const transport: TransportName = transportNames[index % transportNames.length] ?? "REST";
    return gateway.call(transport, logIn, { email, password }, { from: `198.51.${index}.7` });
  });
  return (await Promise.all(tries)).map(({ slug }) => slug);
}

test("an address allows strangers 20 tries an hour over all transports, and its user more tries and links", async () => {
  const person = await gateway.signUp();
  const home = "203.0.113.5";
  const right = { email: person.email, password: person.password };
  expect((await gateway.call("REST", logIn, right, { from: home })).slug).toBe("");
  for (const email of [person.email, freshEmail()]) {
    const before = await countHashes();
    const slugs = await guess(email, 32);
    expect(slugs.filter((slug) => slug === "invalid-credentials")).toHaveLength(20);
    expect(slugs.filter((slug) => slug === "rate-limited")).toHaveLength(12);
    expect((await countHashes()) - before).toBe(20);
  }
  const stranger = await gateway.call("REST", logIn, right, { from: "192.0.2.9" });
  expect(stranger.slug).toBe("rate-limited");
  const wait = Number(stranger.extensions.retry_after_seconds);
  expect(wait).toBeGreaterThan(3_000);
  const shown = ["bucket", "remaining", "reset"].map((name) => stranger.headers.get(`x-ratelimit-${name}`));
  expect(shown).toEqual(["global", "0", String(Math.ceil(gateway.now() / 1_000) + wait)]);
  expect(stranger.answer.detail).toMatch(/^too many attempts at the password of this address within an hour/);
  // Another address in the network of the user's earlier login.
  expect((await gateway.call("REST", logIn, right, { from: "203.0.113.99" })).slug).toBe("");
  await gateway.call("REST", requestMagicLink, { email: person.email }, { from: "192.0.2.9" });
  const token = await tokenOfMail(gateway.mailbox, person.email);
  expect((await gateway.call("REST", consumeMagicLink, { token }, { from: "192.0.2.9" })).slug).toBe("");
  gateway.pass(3_600_000);
  expect((await gateway.call("REST", logIn, right, { from: "198.51.0.8" })).slug).toBe("");
  // The user's network stays known for 30 days after each login.
  for (const [days, slug] of [
    [15, ""],
    [45, "rate-limited"],
  ] as const) {
    gateway.pass(days * 86_400_000);
    await guess(person.email, 24);
    expect((await gateway.call("REST", logIn, right, { from: home })).slug).toBe(slug);
  }
}, 120_000);

/** All requests that guess a secret without a valid bearer, with the slug of a wrong guess. */
const guesses = [
  [logIn, () => ({ email: freshEmail(), password }), "invalid-credentials"],
  [verifyEmail, () => ({ token: "0".repeat(40) }), "invalid-auth-token"],
  [consumeMagicLink, () => ({ token: "0".repeat(40) }), "invalid-auth-token"],
  [confirmPasswordReset, () => ({ token: "0".repeat(40), password }), "invalid-auth-token"],
  [refresh, () => ({ refresh_token: `phr_${"0".repeat(26)}_${"0".repeat(40)}` }), "invalid-auth-token"],
  [OAuthService.method.token, () => clientOf("client_credentials"), "unauthorized"],
  [OAuthService.method.token, () => clientOf("refresh_token"), "bad-request"],
  [ProfileService.method.list, () => ({}), "invalid-key", `phk_${"0".repeat(26)}_${"0".repeat(40)}`],
  [stepUp, () => ({ code: "000000" }), "invalid-key", `pha_${"0".repeat(26)}_${"0".repeat(40)}`],
] as const;

const clientOf = (grant_type: string) => ({
  grant_type,
  client_id: `key_${"0".repeat(26)}`,
  client_secret: "nobody's",
  refresh_token: "nobody's",
});

test.each(transportNames)("each guess over %s costs the client's address a token of its bucket", async (transport) => {
  for (const [index, [method, request, slug, token]] of guesses.entries()) {
    const from = `192.0.${transportNames.indexOf(transport)}.${index}`;
    const told = await gateway.call(transport, method, request(), { from, token });
    const left = told.headers.get("x-ratelimit-remaining");
    expect([method.name, told.slug, left]).toEqual([method.name, slug, "59"]);
  }
});

/** Number of executed jobs of the kind "link". */
async function countLooks(): Promise<number> {
  const metric = await gateway.app.metrics.getSingleMetric("pilothouse_jobs_attempts_total")?.get();
  const ofLinks = metric?.values.filter(({ labels }) => labels.kind === "link") ?? [];
  return ofLinks.reduce((sum, { value }) => sum + value, 0);
}

test("a link request is answered before the user is looked up", async () => {
  const pending = { email: freshEmail(), password };
  await gateway.call("REST", signUp, pending);
  const known = { email: (await gateway.signUp()).email, password };
  const cases = [
    [requestMagicLink, { email: known.email }],
    [requestMagicLink, { email: freshEmail() }],
    [requestPasswordReset, { email: known.email }],
    [requestPasswordReset, { email: freshEmail() }],
    [signUp, pending],
    [signUp, known],
  ] as const;
  for (const [method, request] of cases) {
    const before = await countLooks();
    await gateway.call("REST", method, request);
    await expect.poll(countLooks, { timeout: 20_000 }).toBe(before + 1);
  }
});

test("an address may request 5 links an hour, with or without a user", async () => {
  const person = await gateway.signUp();
  for (const method of [requestMagicLink, requestPasswordReset]) {
    for (const email of [person.email, freshEmail()]) {
      const asked = Array.from({ length: 10 }, (_, index) =>
        gateway.call("REST", method, { email }, { from: `198.51.${index}.7` }),
      );
      const slugs = (await Promise.all(asked)).map(({ slug }) => slug);
      expect(slugs.filter((slug) => slug === "")).toHaveLength(5);
      expect(slugs.filter((slug) => slug === "rate-limited")).toHaveLength(5);
    }
  }
});
