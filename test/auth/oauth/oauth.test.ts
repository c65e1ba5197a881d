import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { OAuthService } from "../../../src/gen/pilothouse/v1/oauth_pb.ts";
import { ProfileService } from "../../../src/gen/pilothouse/v1/profile_pb.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";

let gateway: PeopleGateway;
let client: { client_id: string; client_secret: string };
beforeAll(async () => {
  gateway = await startPeopleGateway();
  const secret = gateway.app.developerKey ?? "";
  client = { client_id: `key_${secret.split("_")[1]}`, client_secret: secret };
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

async function post(form: Record<string, string> | string, headers: Record<string, string> = {}) {
  const body = new URLSearchParams(form);
  const response = await fetch(`${gateway.url}/v1/oauth/token`, { method: "POST", body, headers });
  expect(response.headers.get("cache-control")).toBe("no-store");
  const answer = await response.json();
  return { status: response.status, slug: answer.type?.split("/").at(-1), answer, headers: response.headers };
}

const listWith = async (key: string, path = "/v1/profiles") =>
  (await restClient({ url: gateway.url, key })(path)).body.type?.split("/").at(-1);

test("a client receives a token for its key, with fewer scopes on request", async () => {
  const grant = { grant_type: "client_credentials", scope: "profiles:read", resource: "https://example.com" };
  const basic = Buffer.from(`${client.client_id}:${client.client_secret}`).toString("base64");
  const asked = [await post({ ...grant, ...client }), await post(grant, { authorization: `Basic ${basic}` })];
  for (const { status, answer } of asked) {
    expect([status, answer]).toEqual([
      200,
      { access_token: expect.stringMatching(/^pho_/), token_type: "Bearer", expires_in: 900, scope: "profiles:read" },
    ]);
    expect(await listWith(answer.access_token)).toBeUndefined();
    expect(await listWith(answer.access_token, "/v1/sessions")).toBe("forbidden");
  }
  gateway.pass(900_000);
  expect(await listWith(asked[0]?.answer.access_token)).toBe("expired-key");
});

test("a refresh token renews a login", async () => {
  const { refreshToken: refresh_token } = await gateway.signUp();
  const { answer } = await post({ grant_type: "refresh_token", refresh_token });
  expect(answer).toMatchObject({
    token_type: "Bearer",
    expires_in: expect.any(Number),
    refresh_token: expect.stringMatching(/^phr_/),
  });
  expect(answer.scope.split(" ")).toContain("team:write");
  expect(await listWith(answer.access_token)).toBeUndefined();
});

test("each refusal has its problem, with the code of RFC 6749", async () => {
  const grant_type = "client_credentials";
  const wrong = client.client_secret.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  const basic = { authorization: `Basic ${Buffer.from("a:b").toString("base64")}` };
  const badRequest = async (error: string, ...[form, headers]: Parameters<typeof post>) =>
    expect([error, await post(form, headers)]).toMatchObject([
      error,
      { status: 400, slug: "bad-request", answer: { error } },
    ]);
  await badRequest("invalid_request", client);
  await badRequest("unsupported_grant_type", { grant_type: "password" });
  await badRequest("invalid_request", `grant_type=${grant_type}&grant_type=${grant_type}`);
  await badRequest("invalid_request", { grant_type, ...client }, basic);
  await badRequest("invalid_request", { grant_type, client_id: client.client_id }, basic);
  await badRequest("invalid_request", { grant_type: "x".repeat(65), ...client });
  await badRequest("invalid_scope", { grant_type, ...client, scope: "everything" });
  await badRequest("invalid_request", { grant_type: "refresh_token" });
  await badRequest("invalid_grant", { grant_type: "refresh_token", refresh_token: "phr_nobody" });
  await badRequest("invalid_scope", { grant_type: "refresh_token", refresh_token: "phr_nobody", scope: "team:write" });
  for (const form of [
    { grant_type },
    { grant_type, ...client, client_secret: wrong },
    { grant_type, ...client, client_id: "key_x" },
  ]) {
    const { status, slug, answer, headers } = await post(form);
    expect([status, slug, answer.error]).toEqual([401, "unauthorized", "invalid_client"]);
    expect(headers.get("www-authenticate")).toMatch(/^Basic/);
  }
  const json = await restClient({ url: gateway.url, key: "" })("/v1/oauth/token", { grant_type });
  expect([json.status, json.body.type.split("/").at(-1), json.body.error]).toEqual([
    400,
    "bad-request",
    "invalid_request",
  ]);
  const overGrpc = await gateway.call("gRPC", OAuthService.method.token, {
    grant_type,
    ...client,
    client_secret: wrong,
  });
  expect(overGrpc).toMatchObject({ slug: "unauthorized", extensions: { error: "invalid_client" } });
});

test("an empty scope is refused, and a repeated one counts once", async () => {
  const grant = { grant_type: "client_credentials", ...client };
  const scopesOf = async (scope: string) => (await post({ ...grant, scope })).answer.scope?.split(" ");
  expect(await scopesOf("profiles:read  profiles:read")).toEqual(["profiles:read"]);
  expect(await scopesOf("")).toContain("team:write");
  const { answer } = await gateway.call("gRPC", OAuthService.method.token, { ...grant, scope: "" });
  expect(answer.scope.split(" ")).toContain("team:write");
});

test("a token of a key ends with the key, keeps its address list, and is issued to its addresses only", async () => {
  const person = await gateway.signUp();
  const from = "203.0.113.9";
  const shown = { token: person.accessToken };
  const made = await gateway.call("REST", ApiKeyService.method.create, { name: "one", addresses: [from] }, shown);
  const { id, key } = made.answer;
  const grant = { grant_type: "client_credentials", client_id: id, client_secret: key };
  const elsewhere = await post(grant, { "x-forwarded-for": "203.0.113.10" });
  expect([elsewhere.status, elsewhere.answer.error]).toEqual([401, "invalid_client"]);
  const { answer } = await post(grant, { "x-forwarded-for": from });
  const token = answer.access_token;
  const list = (client: string) => gateway.call("REST", ProfileService.method.list, {}, { token, from: client });
  expect((await list(from)).slug).toBe("");
  expect((await list("203.0.113.10")).slug).toBe("forbidden");
  await gateway.call("REST", ApiKeyService.method.revoke, { id }, shown);
  expect((await list(from)).slug).toBe("revoked-key");
  expect((await post(grant, { "x-forwarded-for": from })).answer.error).toBe("invalid_client");
});

test("a network may try 100 client secrets an hour, across all clients", async () => {
  const grant = { grant_type: "client_credentials", client_secret: "phk_nobody" };
  const from = (network: number, host: number) => ({ "x-forwarded-for": `198.51.${network}.${host}` });
  for (const client_id of [client.client_id, `key_${"0".repeat(26)}`]) {
    const tries = Array.from({ length: 110 }, (_, index) => post({ ...grant, client_id }, from(1, index)));
    const slugs = (await Promise.all(tries)).map(({ slug }) => slug);
    expect(slugs.filter((slug) => slug === "unauthorized")).toHaveLength(100);
    expect(slugs.filter((slug) => slug === "rate-limited")).toHaveLength(10);
    // The client itself has another network.
    expect((await post({ ...grant, client_id }, from(2, 1))).slug).toBe("unauthorized");
  }
  expect((await post({ ...grant, ...client }, from(1, 1))).slug).toBe("rate-limited");
  expect((await post({ ...grant, ...client }, from(2, 1))).status).toBe(200);
});

test("a token grants only its own scopes, and no credential that outlives it", async () => {
  const { rest } = await gateway.signUp();
  const { id, key } = (await rest("/v1/api-keys", { name: "one" })).body;
  const grant = { grant_type: "client_credentials", client_id: id, client_secret: key };
  const [narrow, full] = [(await post({ ...grant, scope: "api_keys:write" })).answer, (await post(grant)).answer];
  const as = (token: string) => restClient({ url: gateway.url, key: token });
  for (const token of [narrow.access_token, full.access_token]) {
    const { status, body } = await as(token)(`/v1/api-keys/${id}/rotate`, {});
    expect([status, body.type?.split("/").at(-1)]).toEqual([403, "forbidden"]);
  }
  const { status, body } = await as(narrow.access_token)("/v1/api-keys", { name: "two" });
  expect([status, body.scopes]).toEqual([201, ["api_keys:write"]]);
  expect(Date.parse(body.expires_at) - gateway.now()).toBeLessThanOrEqual(900_000);
  expect((await as(key)(`/v1/api-keys/${id}/rotate`, {})).status).toBe(200);
});
