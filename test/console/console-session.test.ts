import { request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromOwnNetwork } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { restClient } from "../support/rest.ts";

interface Sent {
  readonly method?: "POST" | "DELETE";
  readonly body?: object;
  readonly headers?: Record<string, string>;
  readonly path?: string;
}

/** Sends a request as a page of the console at an address does. */
async function send(gateway: PeopleGateway, origin: string, { method = "POST", body, headers, path }: Sent = {}) {
  const answer = await request(`${gateway.url}${path ?? "/console/session"}`, {
    method,
    headers: {
      host: new URL(origin).host,
      origin,
      "sec-fetch-site": "same-origin",
      "x-console": "1",
      ...(body && { "content-type": "application/json" }),
      ...fromOwnNetwork(),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.body.text();
  const cookie = String(answer.headers["set-cookie"] ?? "");
  return { status: answer.statusCode, cookie, json: text === "" ? {} : JSON.parse(text) };
}

const pairOf = (cookie: string): string => cookie.split(";", 1)[0] ?? "";

describe("on http loopback", () => {
  let gateway: PeopleGateway;
  beforeAll(async () => {
    gateway = await startPeopleGateway();
  }, 60_000);
  afterAll(() => gateway?.[Symbol.asyncDispose]());

  test("the cookie has the port in its name, renews the login, and ends with it", async () => {
    const { refreshToken } = await gateway.signUp();
    const begun = await send(gateway, gateway.url, { body: { refresh_token: refreshToken } });
    const { port } = new URL(gateway.url);
    expect(begun.cookie).toMatch(
      new RegExp(
        `^pilothouse_console_${port}=phr_\\S+; Max-Age=86400; HttpOnly; SameSite=Strict; Path=/console/session$`,
      ),
    );
    expect(Object.keys(begun.json)).toEqual(["access_token", "expires_at"]);

    const renewed = await send(gateway, gateway.url, { body: {}, headers: { cookie: `a=b; ${pairOf(begun.cookie)}` } });
    expect(renewed.status).toBe(200);
    expect(pairOf(renewed.cookie)).not.toBe(pairOf(begun.cookie));
    const asPerson = restClient({ url: gateway.url, key: renewed.json.access_token });
    expect(await asPerson("/v1/account/me")).toMatchObject({ status: 200 });

    const ended = await send(gateway, gateway.url, { method: "DELETE", headers: { cookie: pairOf(renewed.cookie) } });
    expect([ended.status, ended.cookie.split(";").slice(0, 2)]).toEqual([
      204,
      [`pilothouse_console_${port}=`, " Max-Age=0"],
    ]);
    expect(await asPerson("/v1/account/me")).toMatchObject({ status: 401 });
    const later = await send(gateway, gateway.url, { body: {}, headers: { cookie: pairOf(renewed.cookie) } });
    expect([later.status, later.cookie]).toEqual([401, expect.stringContaining("Max-Age=0")]);
  }, 30_000);

  test.each([
    ["another port of the host", { origin: "http://127.0.0.1:1" }],
    ["no origin", { origin: "" }],
    ["a page of the same site", { "sec-fetch-site": "same-site" }],
    ["a form of another site", { "sec-fetch-site": "cross-site" }],
    ["no header of the console", { "x-console": "" }],
  ])("a request from %s is forbidden and spends no token", async (_, headers) => {
    const { refreshToken } = await gateway.signUp();
    const body = { refresh_token: refreshToken };
    const refused = await send(gateway, gateway.url, { body, headers });
    expect([refused.status, refused.cookie, refused.json.type]).toEqual([
      403,
      "",
      expect.stringMatching(/\/forbidden$/),
    ]);
    expect(await send(gateway, gateway.url, { body })).toMatchObject({ status: 200 });
  });

  test("a host of another name is forbidden", async () => {
    const { status } = await send(gateway, "http://rebound.example", {
      body: {},
      headers: { host: "rebound.example" },
    });
    expect([400, 403]).toContain(status);
  });

  test("no endpoint of the API reads the cookie", async () => {
    const { refreshToken } = await gateway.signUp();
    const { cookie } = await send(gateway, gateway.url, { body: { refresh_token: refreshToken } });
    const answer = await request(`${gateway.url}/v1/account/me`, { headers: { cookie: pairOf(cookie) } });
    await answer.body.dump();
    expect([answer.statusCode, answer.headers["set-cookie"]]).toEqual([401, undefined]);
  });

  test("the cookie continues the login in another account of the person", async () => {
    const [ada, host] = [await gateway.signUp(), await gateway.signUp()];
    await host.rest("/v1/team/invites", { email: ada.email });
    const mail = await gateway.mailbox.next(ada.email);
    const token = mail.links.map((link) => new URL(link).hash.slice(1)).find((hash) => hash !== "");
    expect(await ada.rest("/v1/team/invites/accept", { token })).toMatchObject({ status: 200 });
    const { cookie } = await send(gateway, gateway.url, { body: { refresh_token: ada.refreshToken } });
    const switched = await send(gateway, gateway.url, {
      body: { account_id: host.accountId },
      headers: { cookie: pairOf(cookie) },
    });
    const { body } = await restClient({ url: gateway.url, key: switched.json.access_token })("/v1/account/me");
    expect(body.account.id).toBe(host.accountId);
  }, 30_000);

  test("more than 30 requests a minute of an address are refused", async () => {
    const headers = fromOwnNetwork();
    const send60 = Array.from({ length: 60 }, () => send(gateway, gateway.url, { body: {}, headers }));
    const statuses = (await Promise.all(send60)).map(({ status }) => status);
    const admitted = statuses.filter((status) => status === 401).length;
    // The bucket fills again by one in two seconds.
    expect([admitted >= 30 && admitted < 50, statuses.includes(429)]).toEqual([true, true]);
  }, 30_000);

  test("the pages have a policy for scripts, and their files are immutable and compressed", async () => {
    const page = await request(`${gateway.url}/console/sessions/ses_1`, { headers: { accept: "text/html" } });
    const html = await page.body.text();
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[\w+/=]+';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(html).not.toMatch(/<script(?![^>]* src=)/);
    const [, script = ""] = /<script[^>]* src="([^"]+)"/.exec(html) ?? [];
    for (const [accepted, coding] of [
      ["br, gzip", "br"],
      ["gzip", "gzip"],
      ["br;q=0, *", "gzip"],
      ["", undefined],
    ] as const) {
      const file = await request(`${gateway.url}${script}`, { headers: { "accept-encoding": accepted } });
      await file.body.dump();
      expect([file.statusCode, file.headers["content-encoding"], file.headers["cache-control"]]).toEqual([
        200,
        coding,
        "public, max-age=31536000, immutable",
      ]);
    }
    const unknown = await request(`${gateway.url}/console/no-such-page`, { headers: { accept: "text/html" } });
    await unknown.body.dump();
    expect(unknown.statusCode).toBe(404);
  });
});

test("over https the cookie is secure and bound to the host", async () => {
  const origin = "https://pilothouse.example";
  await using gateway = await startPeopleGateway({ PUBLIC_URL: origin });
  const { refreshToken } = await gateway.signUp();
  const { cookie } = await send(gateway, origin, { body: { refresh_token: refreshToken } });
  expect(cookie).toMatch(
    /^__Host-pilothouse_console=phr_\S+; Max-Age=2592000; Secure; HttpOnly; SameSite=Strict; Path=\/$/,
  );
}, 60_000);

test("over http of another host there is no cookie", async () => {
  const origin = "http://pilothouse.example:8080";
  await using gateway = await startPeopleGateway({ PUBLIC_URL: origin });
  const { refreshToken } = await gateway.signUp();
  const begun = await send(gateway, origin, { body: { refresh_token: refreshToken } });
  expect([begun.status, begun.cookie]).toEqual([200, ""]);
}, 60_000);
