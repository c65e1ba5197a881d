import { afterAll, beforeAll, expect, test } from "vitest";
import { OAuthService } from "../../src/gen/pilothouse/v1/oauth_pb.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";

let gateway: PeopleGateway;
/** The developer's key as a client. */
let client: { client_id: string; client_secret: string };
beforeAll(async () => {
  gateway = await startPeopleGateway();
  const secret = gateway.app.developerKey ?? "";
  client = { client_id: `key_${secret.split("_")[1]}`, client_secret: secret };
}, 60_000);
afterAll(() => gateway?.[Symbol.asyncDispose]());

/** Posts a form, as OAuth clients do. */
async function post(form: Record<string, string> | string, headers: Record<string, string> = {}) {
  const body = new URLSearchParams(form);
  const response = await fetch(`${gateway.url}/v1/oauth/token`, { method: "POST", body, headers });
  expect(response.headers.get("cache-control")).toBe("no-store");
  const answer = await response.json();
  return { status: response.status, slug: answer.type?.split("/").at(-1), answer, headers: response.headers };
}

const listWith = async (key: string, path = "/v1/profiles") =>
  (await restClient({ url: gateway.url, key })(path)).body.type?.split("/").at(-1);

test("a client gets a token for its key, with fewer scopes if it asks for them", async () => {
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

test("a login goes on by its refresh token", async () => {
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

test("each way to be refused has its problem, with the code of RFC 6749", async () => {
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
  await badRequest("invalid_scope", { grant_type, ...client, scope: "everything" });
  await badRequest("invalid_request", { grant_type: "refresh_token" });
  await badRequest("invalid_grant", { grant_type: "refresh_token", refresh_token: "phr_nobody" });
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
  expect([json.status, json.body.type.split("/").at(-1)]).toEqual([400, "bad-request"]);
  const overGrpc = await gateway.call("gRPC", OAuthService.method.token, {
    grant_type,
    ...client,
    client_secret: wrong,
  });
  expect(overGrpc).toMatchObject({ slug: "unauthorized", extensions: { error: "invalid_client" } });
});
