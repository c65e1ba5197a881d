import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorTable } from "../../src/platform/error-table.ts";
import type { DoorName } from "../support/door-calls.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Answer, restClient } from "../support/rest.ts";
import { forDoor } from "./walk/methods.ts";
import { refusals } from "./walk/refusals.ts";

const workerToken = "a token of the tests alone";

/** What sessions, their browsers and later parts refuse, and what the walk over the registry meets at every method. */
const elsewhere: readonly string[] = [
  ...["legal-acceptance-required", "validation-failed", "method-not-allowed", "internal", "feature-unavailable"],
  ...["profile-in-use", "session-destroyed", "session-timeout", "proxy-validation-failed", "capacity-unavailable"],
  ...["driver-error", "driver-not-integrated", "pair-mode-conflict", "pair-mode-invalid-transition"],
  ...["bundled-llm-budget-exhausted", "bundled-llm-consent-required", "byok-llm-required"],
];

const sold = "personal, api_builder, api_scale";
const input = "/v1/agent-sessions/ags_01jd2z5r1v7k9m3q8t4w6x0y2b/input-event";
const lan = "https://10.0.0.1/v1";

let gateway: PeopleGateway;
let worker: FakeWorker;
beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
  worker = new FakeWorker({ control: `unix:${gateway.app.config.dataDir}/fleet.sock`, token: workerToken, slots: 20 });
  await worker.start();
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});

test("every error of the table is met here, or is known to be met elsewhere", () => {
  const met = new Set([...refusals.map(({ slug }) => slug), ...elsewhere]);
  expect([...met].toSorted()).toEqual(Object.keys(errorTable).toSorted());
});

describe.each<DoorName>(["REST", "gRPC on GRPC_PORT"])("over %s", (door) => {
  test.each(refusals)("$why is $slug", async ({ slug, extensions = {}, comesAgain, prepare }) => {
    const { method, request = {}, shown } = await prepare(gateway);
    const refused = await gateway.call(door, method, forDoor(door, method, request), shown);
    expect({ slug: refused.slug, extensions: refused.extensions }).toEqual({ slug, extensions });
    // What is in the table says nothing of this request.
    const { detail = refused.answer.rawMessage } = refused.answer;
    expect([undefined, "", errorTable[slug].title, errorTable[slug].about]).not.toContain(detail);
    expect(String(refused.retryAfter)).toBe(String(comesAgain && refused.extensions.retry_after_seconds));
    if (door !== "REST") return;
    const { status, title } = errorTable[slug];
    expect(refused.headers.get("content-type")).toBe("application/problem+json");
    expect(refused.answer).toMatchObject({
      ...{ status, title, type: `${gateway.app.config.errorsBase}/${slug}` },
      instance: refused.headers.get("x-request-id"),
    });
  });
});

test.each<[string, [string, object?, string?], string, string?]>([
  ["a tier that is not sold", ["/v1/billing/checkout-session", { tier: "enterprise" }], `tier: must be one of ${sold}`],
  ["no tier at all", ["/v1/billing/checkout-session", { tier: "gold" }], `tier: must be one of ${sold}`],
  ["a list without items", ["/v1/recipes", { name: "r", steps: [] }], "steps: must have at least one item"],
  ["an event of no kind", [input, { events: [{ kind: "dance" }] }], "events[0].kind: must be one of pointer_move"],
  ["a parameter of a list", ["/v1/sessions?label=env=t"], "label: must look like env:prod"],
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
  "%s is told in the terms of the endpoint, and once",
  async (_, [path, body, method], detail, slug = "validation-failed") => {
    const rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
    const refused = await rest(path, body, method === undefined ? {} : { method });
    expect(refused.body.detail.slice(0, detail.length)).toBe(detail);
    expect([refused.body.type.split("/").at(-1), refused.body.errors.length]).toEqual([slug, 1]);
  },
);

test("an agent session that makes a browser draws what a session does, and one on a session draws nothing of that", async () => {
  const { rest } = await gateway.signUp();
  const create = (request: object) => rest("/v1/agent-sessions", request);
  const bucketOf = ({ headers }: Answer) => headers.get("x-ratelimit-bucket");
  for (let left = 4; left >= 0; left -= 1) {
    const made = await create({});
    expect([made.status, bucketOf(made)]).toEqual([201, "sessions:create"]);
    expect(made.headers.get("x-ratelimit-remaining")).toBe(String(left));
    // What is refused costs nothing.
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
  ["an answer", "/v1/sessions", {}],
  ["a problem", "/v1/nothing", {}],
  ["a problem of the front", "/v1/sessions", { expect: "nothing" }],
  ["the OpenAPI document", "/v1/openapi.json", {}],
])("%s ends with one newline, which its length counts", async (_, path, more) => {
  const headers = { authorization: `Bearer ${gateway.app.developerKey}`, "accept-encoding": "identity", ...more };
  const request = get(`${gateway.url}${path}`, { headers });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const body = await text(response);
  expect(body).toMatch(/[^\n]\n$/);
  if (response.headers["content-length"] !== undefined)
    expect(Number(response.headers["content-length"])).toBe(Buffer.byteLength(body));
});
