import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ErrorSlug, errorTable } from "../../src/platform/error-table.ts";
import type { FakeWorker } from "../support/fake-worker.ts";
import { withLong } from "../support/long-test.ts";
import { oneOfEach } from "../support/one-of-each.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Answer, restClient } from "../support/rest.ts";
import type { TransportName } from "../support/transport-calls.ts";
import { forTransport } from "./walk/methods.ts";
import { type Refusal, refusals } from "./walk/refusals.ts";
import { failingWorker, refusalsEnv, sessionRefusals, termsRefusal } from "./walk/session-refusals.ts";

const workerToken = "a token of the tests alone";

/** Next step that the detail of an error names. */
const nextSteps: Readonly<Record<ErrorSlug, RegExp>> = {
  "bad-request": /must be|log in again/,
  "validation-failed": /^name: (?:is required|must )/,
  unauthorized: /send the header|check client_id/,
  "invalid-key": /check that|send an API key/,
  "revoked-key": /use another key, or log in again/,
  "expired-key": /use the key that replaced it, refresh the login, or create a new one/,
  "invalid-auth-token": /(?:ask for|request) another|log in again/,
  "email-not-verified": /open the link in the e-mail/,
  "invalid-credentials": /try again|wait for the next one/,
  forbidden: /that has this scope|post to|use an allowed address/,
  "mfa-step-up-required": /\/v1\/auth\/mfa\/step-up/,
  "legal-acceptance-required": /\/v1\/legal\/accept/,
  "not-found": /no key has this id/,
  "method-not-allowed": /^this path accepts POST, GET, HEAD, not PUT$/,
  conflict: /remove it first|GET \/v1\/legal\/current/,
  "storage-quota-exceeded": /delete a profile, or leave profile_id out/,
  "profile-in-use": /end it first, or leave profile_id out/,
  "pair-mode-conflict": /wait until/,
  "pair-mode-invalid-transition": /there is nothing to hand back/,
  "email-already-registered": /log in/,
  "session-destroyed": /create another/,
  "proxy-validation-failed": /correct the proxy's settings/,
  "concurrency-limit": /^the account runs 1 session, .*: end one first$/,
  "tier-limit": /revoke one first|delete one first|wait until/,
  "rate-limited": /(?:wait|retry after) \d+ s/,
  "bundled-llm-budget-exhausted": /raise monthly_cap_cents/,
  "bundled-llm-consent-required": /bundled_llm_consent true/,
  internal: /[Tt]ry again/,
  "driver-error": /check the address/,
  "byok-llm-required": /omit model/,
  "driver-not-integrated": /create a session with runtime chromium/,
  "feature-unavailable": /watch (?:by|through) a view link/,
  "capacity-unavailable": /try again in a moment/,
  "session-timeout": /try again/,
};

const refusedAt: readonly TransportName[] = ["REST", "gRPC on GRPC_PORT"];
const sold = "personal, api_builder, api_scale";
const input = "/v1/agent-sessions/ags_01jd2z5r1v7k9m3q8t4w6x0y2b/input-event";
const lan = "https://10.0.0.1/v1";

let gateway: PeopleGateway;
let worker: FakeWorker;
beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken, ...refusalsEnv });
  const control = `unix:${gateway.app.config.dataDir}/fleet.sock`;
  worker = failingWorker({ control, token: workerToken });
  await worker.start();
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});

/** Slug of REST only: gRPC has no methods per path. */
const onRestAlone: ErrorSlug = "method-not-allowed";

test("tests every error of the table", () => {
  const met = new Set([...refusals, ...sessionRefusals, termsRefusal].map(({ slug }) => slug)).add(onRestAlone);
  expect([...met].toSorted()).toEqual(Object.keys(errorTable).toSorted());
});

const all = [...refusals, ...sessionRefusals];
const ofEachSlug = new Set(oneOfEach(all, ({ slug }) => slug));

/** All refusals over REST. Over gRPC one of each slug, and the others for `npm run test-long`. */
const refusalsOver = (transport: TransportName) =>
  transport === "REST"
    ? all
    : withLong(
        [...ofEachSlug],
        all.filter((refusal) => !ofEachSlug.has(refusal)),
      );

describe.each(refusedAt)("over %s", (transport) => {
  test.each(refusalsOver(transport))("$why is refused with $slug", (refusal) => expectRefusal(transport, refusal));
});

async function expectRefusal(transport: TransportName, refusal: Refusal): Promise<void> {
  const { slug, extensions = {}, comesAgain, prepare } = refusal;
  const { method, request = {}, shown } = await prepare(gateway);
  const refused = await gateway.call(transport, method, forTransport(transport, method, request), shown);
  expect({ slug: refused.slug, extensions: refused.extensions }).toEqual({ slug, extensions });
  const { detail = refused.answer.rawMessage } = refused.answer;
  expect(detail).toMatch(nextSteps[slug]);
  // The detail must be specific to the request, unlike the texts of the table. Internal errors are the exception.
  if (slug !== "internal") expect([errorTable[slug].title, errorTable[slug].about]).not.toContain(detail);
  const wait = comesAgain === true ? refused.extensions.retry_after_seconds : comesAgain;
  expect(String(refused.retryAfter)).toBe(String(wait));
  if (transport !== "REST") return;
  const { status, title } = errorTable[slug];
  expect(refused.headers.get("content-type")).toBe("application/problem+json");
  expect(refused.answer).toMatchObject({
    status,
    title,
    type: `${gateway.app.config.errorsBase}/${slug}`,
    instance: refused.headers.get("x-request-id"),
  });
}

test("refuses a method that a path does not accept with method-not-allowed", async () => {
  const rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
  const { status, body } = await rest("/v1/sessions", {}, { method: "PUT" });
  expect([status, body.type.split("/").at(-1)]).toEqual([405, onRestAlone]);
  expect(body.detail).toMatch(nextSteps[onRestAlone]);
});

test.each<[string, [string, object?, string?], string, string?]>([
  ["a tier that is not sold", ["/v1/billing/checkout-session", { tier: "enterprise" }], `tier: must be one of ${sold}`],
  ["an unknown tier", ["/v1/billing/checkout-session", { tier: "gold" }], `tier: must be one of ${sold}`],
  ["a list without items", ["/v1/recipes", { name: "r", steps: [] }], "steps: must have at least one item"],
  ["an unknown event kind", [input, { events: [{ kind: "dance" }] }], "events[0].kind: must be one of pointer_move"],
  ["an invalid list parameter", ["/v1/sessions?label=env=t"], "label: must look like env:prod"],
  [
    "a private base address",
    [
      "/v1/account/me/byok-llm-key",
      { provider: "openai_compatible", api_key: "12345678", model: "m", base_url: lan },
      "PUT",
    ],
    "base_url: ",
    "bad-request",
  ],
])(
  "%s is reported once, in the terms of the endpoint",
  async (_, [path, body, method], detail, slug = "validation-failed") => {
    const rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
    const refused = await rest(path, body, method === undefined ? {} : { method });
    expect(refused.body.detail.slice(0, detail.length)).toBe(detail);
    expect([refused.body.type.split("/").at(-1), refused.body.errors.length]).toEqual([slug, 1]);
  },
);

test("an agent session consumes a sessions:create token only if it creates a browser", async () => {
  const { rest } = await gateway.signUp();
  const create = (request: object) => rest("/v1/agent-sessions", request);
  const bucketOf = ({ headers }: Answer) => headers.get("x-ratelimit-bucket");
  for (let left = 4; left >= 0; left -= 1) {
    const made = await create({});
    expect([made.status, bucketOf(made)]).toEqual([201, "sessions:create"]);
    expect(made.headers.get("x-ratelimit-remaining")).toBe(String(left));
    // A refused request consumes no token.
    expect((await create({})).body.type).toMatch(left > 0 ? /concurrency-limit$/ : /rate-limited$/);
    await rest(`/v1/agent-sessions/${made.body.id}`, undefined, { method: "DELETE" });
  }
  const refused = await create({});
  expect([refused.status, bucketOf(refused)]).toEqual([429, "sessions:create"]);
  expect((await rest("/v1/sessions", {})).status).toBe(429);
  const attached = await create({ session_id: "ses_01jd2z5r1v7k9m3q8t4w6x0y2b" });
  expect([attached.status, bucketOf(attached)]).toEqual([404, "global"]);
});

test.each([
  ["a response", "/v1/sessions", {}],
  ["a problem", "/v1/nothing", {}],
  ["a problem of the HTTP server", "/v1/sessions", { expect: "nothing" }],
  ["the OpenAPI document", "/v1/openapi.json", {}],
])("%s ends with one newline, included in Content-Length", async (_, path, more) => {
  const headers = { authorization: `Bearer ${gateway.app.developerKey}`, "accept-encoding": "identity", ...more };
  const request = get(`${gateway.url}${path}`, { headers });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const body = await text(response);
  expect(body).toMatch(/[^\n]\n$/);
  if (response.headers["content-length"] !== undefined)
    expect(Number(response.headers["content-length"])).toBe(Buffer.byteLength(body));
});

// Runs last: afterwards every account must accept terms.
test.each(refusedAt)("terms that are not accepted are legal-acceptance-required over %s", (transport) =>
  expectRefusal(transport, termsRefusal),
);
