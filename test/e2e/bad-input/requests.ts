import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { parseTemplate } from "../../../gateway/rest/template.ts";
import { chunkedBody } from "../../support/chunked-body.ts";
import { addAccount, strangeSession } from "../support/accounts.ts";
import { expectProblem, send } from "../support/problem.ts";
import {
  type Choose,
  callerOf,
  endpoints,
  type GetScene,
  kindOf,
  pathOf,
  type Scene,
  sessionEndpoints,
} from "./scene.ts";

const kibibyte = 1024;
const paths = [...new Set(endpoints.map(({ path }) => path))];
const invalid = { status: 400, slug: "validation-failed" };
const tooLarge = (max: number) => ["x".repeat(max + 1), chunkedBody(max + 65_536)];
const largest = ({ isPublic }: { readonly isPublic: boolean }) =>
  isPublic ? { bytes: 16 * kibibyte, text: "16 KiB" } : { bytes: 1024 * kibibyte, text: "1 MiB" };

// A fixed path segment may also match the `{id}` of another template.
const servedAt = (path: string) => endpoints.filter((endpoint) => parseTemplate(endpoint.path).pattern.test(path));
const verbsAt = (path: string) =>
  servedAt(path)
    .map(({ verb }) => verb)
    .join();
const to = ({ path }: { readonly path: string }, { sessionId }: Scene) => pathOf({ path }, sessionId);

/** Bodies, timeouts and methods that every endpoint refuses. */
export function endpointTests(scene: GetScene, choose: Choose): void {
  const chosen = choose(endpoints, kindOf);
  const posts = chosen.filter(({ verb }) => verb === "POST");

  test.each(posts.filter(({ takesForm, takesRaw }) => !takesForm && !takesRaw))(
    "POST $path accepts one JSON object of limited size",
    async (endpoint) => {
      const caller = callerOf(endpoint, scene());
      const path = to(endpoint, scene());
      const max = largest(endpoint);
      for (const [body, detail] of [
        ["{", "body: is not JSON: it is incomplete"],
        ['{"a": 1}}', "body: is not JSON: unexpected input at character 9"],
        ["\u{feff}[]", "body: must be an object"],
        ["\u{feff}\u{feff}{}", "body: is not JSON"],
        ["undefined", "body: is not JSON: send one JSON value"],
        ["[]", "body: must be an object"],
        ["null", "body: must be an object"],
        ['"text"', "body: must be an object"],
        ["[".repeat(8_000), "body: is not JSON"],
        [`${"[".repeat(8_000)}${"]".repeat(8_000)}`, "body: must be an object"],
        ...(endpoint.isPublic ? [] : ([["[".repeat(500_000), "body: has more than 20000 elements"]] as const)),
        [Buffer.from('{"a": "\xff"}', "latin1"), "body: is not UTF-8"],
        ...tooLarge(max.bytes).map((body) => [body, `body: is larger than ${max.text}`] as const),
      ] as const) {
        expectProblem(await send(caller, { path, body }), { ...invalid, detail });
      }
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "nonsense"]) {
        const headers = { "content-type": type };
        const expected = { status: 400, slug: "bad-request", detail: "Content-Type: must be application/json" };
        expectProblem(await send(caller, { path, body: "{}", headers }), expected);
      }
      expectProblem(await send(caller, { path: `${path}?x=1`, body: endpoint.body }), {
        ...invalid,
        detail: "x: is not a known parameter",
      });
    },
  );

  test.each(posts.filter(({ takesForm }) => takesForm))(
    "POST $path accepts one form of limited size",
    async (endpoint) => {
      // RFC 6749, section 5.2.
      const refused = { status: 400, slug: "bad-request", extensions: { error: "invalid_request" } };
      const caller = callerOf(endpoint, scene());
      const path = to(endpoint, scene());
      const max = largest(endpoint);
      const headers = { "content-type": "application/x-www-form-urlencoded" };
      const field = String(Object.keys(Object(endpoint.body))[0]);
      const form = new URLSearchParams(Object(endpoint.body)).toString();
      for (const body of tooLarge(max.bytes)) {
        const answer = await send(caller, { path, body, headers });
        expectProblem(answer, { ...invalid, detail: `body: is larger than ${max.text}` });
      }
      const wrong = [
        [`${form}&${field}=x`, `the field ${field} must appear only once`],
        [`${field}=%00`, `${field}: must not contain U+0000`],
        [`${field}=${"x".repeat(10_000)}`, `${field}: must have at most`],
      ] as const;
      for (const [body, detail] of wrong)
        expectProblem(await send(caller, { path, body, headers }), { ...refused, detail });
      for (const type of ["text/plain", "application/json", "multipart/form-data", "nonsense"]) {
        const answer = await send(caller, { path, body: form, headers: { "content-type": type } });
        const detail = "Content-Type: must be application/x-www-form-urlencoded";
        expectProblem(answer, { ...refused, detail });
      }
      const answer = await send(caller, { path: `${path}?x=1`, body: form, headers });
      expectProblem(answer, { ...refused, detail: "x: is not a known parameter" });
    },
  );

  test.each(chosen)("$verb $path accepts a timeout of 1 to 600,000 ms", async (endpoint) => {
    for (const timeout of ["0", "600001", "soon", "1.5", "-1", "", "0x10", "1e3"]) {
      const answer = await send(callerOf(endpoint, scene()), {
        method: endpoint.verb,
        path: to(endpoint, scene()),
        ...("body" in endpoint && { body: endpoint.body }),
        headers: { "x-request-timeout-ms": timeout },
      });
      expectProblem(answer, { status: 400, slug: "bad-request", detail: "X-Request-Timeout-Ms: must be" });
    }
  });

  test.each(choose(paths, verbsAt))("%s responds to wrong methods with Allow", async (path) => {
    const served = servedAt(path);
    const verbs: string[] = served.map(({ verb }) => verb);
    const allowed = served.flatMap(({ verb, hasHead }) => (hasHead ? [verb, "HEAD"] : [verb]));
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      if (!verbs.includes(method)) {
        const answer = await send(scene().service, { method, path: to({ path }, scene()) });
        expectProblem(answer, { status: 405, slug: "method-not-allowed" });
        expect(answer.headers.get("allow")?.split(", ").toSorted()).toEqual(allowed.toSorted());
      }
    }
  });
}

/** Requests that are refused before their fields are validated. */
export function requestTests(scene: GetScene): void {
  let strangersKey = "";
  beforeAll(async () => {
    strangersKey = await addAccount(scene().service);
  });

  test.each(sessionEndpoints)("$verb $path does not find a session of another account", async (endpoint) => {
    const { service, sessionId } = scene();
    const stranger = { url: service.url, key: strangersKey };
    const request = { method: endpoint.verb, ...("body" in endpoint && { body: endpoint.body }) };
    for (const id of ["nope", "ses_", strangeSession(), `${sessionId}x`, encodeURIComponent("../x"), "%20"]) {
      const answer = await send(service, { ...request, path: pathOf(endpoint, id) });
      expectProblem(answer, { status: 404, slug: "not-found", detail: "no session has this id" });
    }
    const others = await send(stranger, { ...request, path: to(endpoint, scene()) });
    expectProblem(others, { status: 404, slug: "not-found", detail: "no session has this id" });
    for (const id of ["x".repeat(65), "x".repeat(4000), "%00"]) {
      const answer = await send(service, { ...request, path: pathOf(endpoint, id) });
      expectProblem(answer, { status: 404, slug: "not-found", detail: "no " });
    }
  });

  test.each([
    ["GET", "/v1"],
    ["GET", "/v2/sessions"],
    ["GET", "/v1/sessions/a/b/c"],
    ["POST", "/v1/crypto-orders"],
    ["GET", "/v1/recipe"],
    ["GET", "/v1/sessions/x/drive"],
    ["POST", "/v1/SESSIONS"],
    ["POST", "/pilothouse.v1.SessionService/Nothing"],
  ])("%s %s is refused with not-found", async (method, path) => {
    expectProblem(await send(scene().service, { method, path }), {
      status: 404,
      slug: "not-found",
      detail: "no endpoint",
    });
  });

  test("a path that cannot be decoded is refused with bad-request", async () => {
    const answer = await send(scene().service, { path: "/v1/sessions/%zz" });
    expectProblem(answer, { status: 400, slug: "bad-request", detail: "path: is not a valid URL path" });
  });

  test("a valid request ID is kept, and an invalid one is replaced", async () => {
    const { service } = scene();
    const own = await send(service, { path: "/v1/nothing", headers: { "x-request-id": "my-own.id:1" } });
    expect(JSON.parse(own.text).instance).toBe("my-own.id:1");
    const other = await send(service, { path: "/v1/nothing", headers: { "x-request-id": "<script>" } });
    expect(JSON.parse(other.text).instance).toMatch(/^req_/);
  });

  test("a request with a foreign Host is refused on loopback, as protection against DNS rebinding", async () => {
    const { service } = scene();
    const request = httpRequest(`${service.url}/v1/sessions`, {
      headers: { host: "evil.example", authorization: `Bearer ${service.key}` },
    }).end();
    const [response]: IncomingMessage[] = await once(request, "response");
    const text = (await response?.toArray())?.join("") ?? "";
    const headers = new Headers(response?.headers as Record<string, string>);
    expectProblem(
      { status: response?.statusCode ?? 0, headers, text },
      { status: 400, slug: "bad-request", detail: "Host: is not a name of this service" },
    );
    expect(headers.get("x-ratelimit-bucket")).toBe("global");
  });

  test("a repeated query parameter is refused", async () => {
    const answer = await send(scene().service, { path: "/v1/sessions?limit=1&limit=2" });
    expectProblem(answer, { status: 400, slug: "validation-failed", detail: "limit: is given more than once" });
  });

  test.each([
    ["a broken request line", "GARBAGE\r\n\r\n"],
    ["headers over 16 KiB", `GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
  ])("%s is refused with a problem", async (_, text) => {
    const { url } = scene().service;
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(text);
    const answer = await readAll(socket);
    const [head = "", body = ""] = answer.split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 400 /);
    expect(head).toMatch(/\r\ncontent-type: application\/problem\+json\r\n/);
    expect(head).toMatch(/\r\nx-ratelimit-remaining: /);
    expect(JSON.parse(body)).toMatchObject({ status: 400, detail: expect.stringMatching(/^(request|headers): /) });
  });

  test("text that PostgreSQL cannot store is refused as invalid on Connect", async () => {
    const path = "/pilothouse.v1.SessionService/Create";
    const { status, text } = await send(scene().service, { path, body: { labels: { run: "\0" } } });
    expect([status, JSON.parse(text).code]).toEqual([400, "invalid_argument"]);
  });
}

async function readAll(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk;
  return text;
}
