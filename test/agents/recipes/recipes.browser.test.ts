import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { admin } from "../../support/admin.ts";
import { borrowCdpScene, type CdpScene } from "../../support/cdp-proxy-scene.ts";
import { LlmProvider, type Said, type ScriptedStep } from "../../support/llm-provider.ts";
import { type Answer, restClient } from "../../support/rest.ts";
import { smallRecipe } from "../../support/small-recipe.ts";

let provider: LlmProvider;
let scene: CdpScene;
/** Id of the browser session for runs that need none of their own. */
let shared: string;
beforeAll(async () => {
  const borrowed = await borrowCdpScene();
  scene = borrowed;
  shared = (await scene.open({ runtime: "chromium" })).slice("/v1/sessions/".length);
  provider = await new LlmProvider().start(borrowed.llmPort);
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
}, 60_000);
beforeEach(() => provider.begin());

const slugOf = ({ body }: Answer): string | undefined => body.type?.split("/").at(-1);
const faultsOf = ({ body }: Answer) =>
  (body.errors ?? []).map(({ field, message }: Record<string, string>) => `${field}: ${message}`);
const make = (recipe: object, init?: RequestInit) => scene.rest("/v1/recipes", recipe, init);

const interact = (action: object, more: object = {}) => ({ do: { kind: "interact", action, ...more } });
const type = (selector: string, text: string) => interact({ kind: "type", selector, text });
const navigate = (url: string) => ({ do: { kind: "navigate", url } });
const waitFor = (condition: object, more: object = {}) => ({ do: { kind: "wait", condition, ...more } });

test("a recipe is created, fetched, listed and deleted, and a repeated request creates no second one", async () => {
  const request = {
    name: "Order tickets",
    description: "Two of them",
    start_url: "https://example.com/{{city}}",
    parameters: [
      { name: "city", description: "Where to" },
      { name: "count", value: "2" },
    ],
    steps: [
      { description: "The form is there.", ...waitFor({ kind: "selector", selector: "#to" }, { timeout_ms: 9_000 }) },
      type("#to", "{{city}} for {{count}}"),
      { do: { kind: "capture", capture_kind: "screenshot", file_name: "{{city}}.png" } },
    ],
  };
  const headers = { "idempotency-key": "recipe-once" };
  const { status, body: made } = await make(request, { headers });
  expect(status).toBe(201);
  expect(made).toMatchObject({ ...request, id: expect.stringMatching(/^rcp_[0-9a-z]{26}$/) });
  expect((await make(request, { headers })).body).toEqual(made);
  expect((await scene.rest(`/v1/recipes/${made.id}`)).body).toEqual(made);
  const { body: second } = await make(smallRecipe);
  expect(second).toMatchObject({ description: null, start_url: null, parameters: [] });
  const newest = (await scene.rest("/v1/recipes?limit=1")).body;
  expect(newest).toMatchObject({ has_more: true, data: [{ id: second.id, step_count: 1 }] });
  const { id, name, description, created_at } = made;
  const older = (await scene.rest(`/v1/recipes?limit=1&cursor=${newest.next_cursor}`)).body;
  expect(older).toEqual({
    data: [{ id, name, description, step_count: 3, created_at }],
    has_more: false,
    next_cursor: null,
  });
  expect(slugOf(await scene.rest("/v1/recipes?cursor=nonsense"))).toBe("validation-failed");
  expect((await scene.rest(`/v1/recipes/${id}`, undefined, { method: "DELETE" })).status).toBe(204);
  for (const method of ["GET", "DELETE"]) {
    const gone = await scene.rest(`/v1/recipes/${id}`, undefined, { method });
    expect([method, slugOf(gone), gone.body.detail]).toEqual([method, "not-found", "no recipe has this id"]);
  }
});

test.each([
  ["no name", { ...smallRecipe, name: "" }, /^name: /],
  ["no steps", { ...smallRecipe, steps: [] }, /^steps: must have at least one item/],
  ["101 steps", { ...smallRecipe, steps: Array(101).fill(navigate("about:blank")) }, /^steps: /],
  ["a step without action", { ...smallRecipe, steps: [{ description: "Nothing." }] }, /^steps\[0\].do: is required/],
  ["an unknown kind", { ...smallRecipe, steps: [{ do: { kind: "dance" } }] }, /^steps\[0\].do/],
  ["an action without kind", { ...smallRecipe, steps: [{ do: { kind: "interact" } }] }, /^steps\[0\].do.action: /],
  ["33 parameters", { ...smallRecipe, parameters: Array(33).fill({ name: "a" }) }, /^parameters: /],
  ["an invalid parameter name", { ...smallRecipe, parameters: [{ name: "a-b" }] }, /^parameters\[0\].name: /],
  [
    "a duplicate name",
    { ...smallRecipe, parameters: [{ name: "a" }, { name: "a" }] },
    /^parameters\[1\].name: is the name/,
  ],
  ["a free variable", { ...smallRecipe, steps: [type("#a", "{{b}}")] }, /^steps\[0\].do.action.text: .* b, which/],
  ["an address without scheme", { ...smallRecipe, start_url: "example.com" }, /^start_url: is not an absolute URL/],
  [
    "the URL of a file",
    { ...smallRecipe, steps: [navigate("file:///etc/passwd")] },
    /^steps\[0\].do.url: must be http/,
  ],
  ["a reference", { ...smallRecipe, steps: [interact({ kind: "tap", ref: "s1e1" })] }, /^steps\[0\].do.action.ref: /],
  [
    "a file outside",
    { ...smallRecipe, steps: [{ do: { kind: "capture", capture_kind: "pdf", file_name: "../a" } }] },
    /^steps\[0\].do.file_name: /,
  ],
  [
    "a full page of a PDF",
    { ...smallRecipe, steps: [{ do: { kind: "capture", capture_kind: "pdf", file_name: "a", full_page: true } }] },
    /^steps\[0\].do: ?.*screenshot|^steps\[0\].do.full_page: /,
  ],
  [
    "too long a text",
    { ...smallRecipe, steps: Array(3).fill(type("#a", "a".repeat(99_999))) },
    /^steps: are too long: the recipe must have at most 262144 bytes/,
  ],
])("a recipe with %s is refused with the path of the fault", async (_, recipe, fault) => {
  const refused = await make(recipe);
  expect([refused.status, slugOf(refused)]).toEqual([400, "validation-failed"]);
  expect(faultsOf(refused)).toEqual([expect.stringMatching(fault)]);
});

/** Waits until an agent session's turn has ended, and returns the turn. */
async function ended(agent: string, turnId: string) {
  const hasEnded = async () => (await scene.rest(agent)).body.running_turn_id === null;
  expect(await waitUntil(hasEnded, { timeout: 30_000, every: 50 })).toBe(true);
  return (await scene.rest(`${agent}/turns/${turnId}/cancel`, {})).body;
}

/** Runs a recipe with the given steps on the shared browser, and ends its agent session afterwards. */
async function withRun<T>(
  recipe: object,
  run: (begun: Begun) => Promise<T>,
  request: object = { session_id: shared },
): Promise<T> {
  await scene.rest(`/v1/sessions/${shared}/navigate`, { url: "about:blank" });
  const { id: recipe_id } = (await make({ ...smallRecipe, ...recipe })).body;
  const { status, body } = await scene.rest("/v1/agent-sessions", { recipe_id, ...request });
  expect({ status, body }).toMatchObject({ status: 201, body: { recipe_id, running_turn_id: expect.any(String) } });
  const { session_id, running_turn_id: turnId } = body;
  const agent = `/v1/agent-sessions/${body.id}`;
  const entries = async () => (await scene.rest(`${agent}/transcript?limit=100`)).body.data;
  const turn = () => ended(agent, turnId);
  try {
    return await run({
      agent,
      session: `/v1/sessions/${session_id}`,
      recipe: `/v1/recipes/${recipe_id}`,
      turn,
      entries,
    });
  } finally {
    await scene.rest(agent, undefined, { method: "DELETE" });
  }
}
interface Begun {
  readonly agent: string;
  readonly session: string;
  readonly recipe: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read turns of every shape.
  turn(): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: tests read entries of every shape.
  entries(): Promise<any[]>;
}

const removeKey = () => scene.rest("/v1/account/me/byok-llm-key", undefined, { method: "DELETE" });
const storeKey = () =>
  scene.rest("/v1/account/me/byok-llm-key", { provider: "anthropic", api_key: provider.key }, { method: "PUT" });

const say = (...script: readonly ScriptedStep[]): void => provider.say(...script);
const call = (name: string, input: object): Said => ({ calls: [{ name, input }] });
const told = (index: number): string => JSON.stringify(provider.asked[index]?.body.messages);

test("the domains of a recipe limit its browser, which must be a new one", async () => {
  const allowed_domains = ["shop.example", "*.tickets.example"];
  const start_url = scene.site.url("/plain.html");
  await withRun(
    { allowed_domains, start_url },
    async ({ agent, recipe, session, turn }) => {
      expect((await scene.rest(recipe)).body.allowed_domains).toEqual(allowed_domains);
      const within = ["a.tickets.example", "shop.example"];
      expect((await scene.rest(agent)).body.allowed_domains).toEqual(within);
      const { status, error } = await turn();
      expect([status, error.detail]).toEqual([
        "failed",
        expect.stringContaining("is not an allowed host of this session"),
      ]);
      const recipe_id = recipe.split("/").at(-1);
      const apart = await scene.rest("/v1/agent-sessions", { recipe_id, allowed_domains: ["127.0.0.1"] });
      expect(faultsOf(apart)).toEqual([expect.stringMatching(/^allowed_domains: has no host in common/)]);
      const attached = await scene.rest("/v1/agent-sessions", { recipe_id, session_id: session.split("/").at(-1) });
      expect(faultsOf(attached)).toEqual([expect.stringMatching(/^recipe_id: has allowed_domains/)]);
    },
    { allowed_domains: ["a.tickets.example", "*.other.example", "shop.example"] },
  );
  expect(scene.site.requests).not.toContain("GET /plain.html");
  const wrong = await make({ ...smallRecipe, allowed_domains: ["https://shop.example"] });
  expect(faultsOf(wrong)).toEqual([expect.stringMatching(/^allowed_domains\[0\]: must be a host/)]);
}, 60_000);

test("a recipe runs without a model after its deletion, and saves captures as files", async () => {
  await removeKey();
  const recipe = {
    parameters: [{ name: "site" }, { name: "text", value: "nobody's" }, { name: "label", value: "B" }],
    start_url: "{{site}}",
    steps: [
      waitFor({ kind: "selector", selector: `#empty,.x${"🚢".repeat(300)}` }),
      type("#empty", "it is {{text}}"),
      interact({ kind: "select", selector: "#country", values: ["de"] }),
      interact({ kind: "select", selector: "#many", labels: ["{{label}}"] }),
      interact({ kind: "fill", selector: "#notes", text: "for {{text}}" }),
      interact({ kind: "check", selector: "#check" }),
      interact({ kind: "key", selector: "#name", key: "End" }),
      { do: { kind: "capture", capture_kind: "dom_snapshot", file_name: "form.html" } },
    ],
  };
  const site = scene.site.url("/form.html");
  await withRun(
    recipe,
    async ({ session, recipe, turn, entries }) => {
      await scene.rest(recipe, undefined, { method: "DELETE" });
      const done = await turn();
      expect(done).toMatchObject({ status: "done" });
      expect([done.reason, done.error]).toEqual([undefined, undefined]);
      const all = await entries();
      expect(all.map(({ role, content }) => [role, content.text ?? content.name])).toEqual([
        ["system", 'The recipe "Small" has started.'],
        ...["navigate", "wait", ...Array(6).fill("interact"), "capture"].map((name) => ["system", name]),
      ]);
      expect(all.slice(1, 4).map(({ content }) => content.arguments)).toEqual([
        { url: site },
        { kind: "selector", selector: `#empty,.x${"🚢".repeat(245)}\ufffd` },
        { kind: "type", selector: "#empty" },
      ]);
      expect(all[6].content.arguments).toEqual({ kind: "fill", selector: "#notes" });
      const file = (await scene.rest(`${session}/files/form.html`)).body;
      for (const part of [
        "it is Ada's",
        "for Ada's</textarea>",
        'value="b" selected',
        'id="check" type="checkbox" checked',
      ])
        expect(file).toContain(part);
      expect(provider.asked).toEqual([]);
    },
    { session_id: shared, recipe_parameters: { site, text: "Ada's" } },
  );
}, 60_000);

test("a secret fills the parameter of its name only where it is typed", async () => {
  const recipe = {
    parameters: [{ name: "pin", value: "usual" }, { name: "site" }],
    start_url: "{{site}}",
    steps: [
      type("#empty", "it is {{pin}}"),
      { do: { kind: "capture", capture_kind: "dom_snapshot", file_name: "a.html" } },
    ],
  };
  const pin = { value: "1234-canary", domains: [new URL(scene.site.url("/")).hostname] };
  const request = { variables: { pin }, recipe_parameters: { site: scene.site.url("/form.html") } };
  await withRun(
    recipe,
    async ({ session, turn, entries }) => {
      expect(await turn()).toMatchObject({ status: "done" });
      expect((await scene.rest(`${session}/files/a.html`)).body).toContain("it is 1234-canary");
      expect(JSON.stringify(await entries())).not.toContain("1234");
    },
    request,
  );
  const { id: recipe_id } = (
    await make({ ...smallRecipe, ...recipe, steps: [waitFor({ kind: "text", text: "{{pin}}" })] })
  ).body;
  const misplaced = await scene.rest("/v1/agent-sessions", { ...request, recipe_id });
  expect(faultsOf(misplaced)).toEqual([
    "variables.pin: can only be typed, but steps[0].do.condition.text has a placeholder for it",
  ]);
}, 60_000);

test("a failing step ends a recipe that has no model", async () => {
  await removeKey();
  const steps = [
    navigate(scene.site.url("/form.html")),
    interact({ kind: "tap", selector: "#nothing" }, { timeout_ms: 200 }),
  ];
  await withRun({ steps: [...steps, navigate(scene.site.url("/plain.html"))] }, async ({ session, turn, entries }) => {
    const { status, reason, error } = await turn();
    expect([status, reason]).toEqual(["failed", "recipe_step_failed"]);
    expect(error.type).toMatch(/session-timeout$/);
    expect(error.detail).toMatch(/^step 2 of the recipe: .*; no model can repair it: /);
    expect((await entries()).at(-1).content.error.type).toMatch(/session-timeout$/);
    expect((await scene.rest(`${session}/state`)).body.url).toBe(scene.site.url("/form.html"));
  });
}, 60_000);

test("a model repairs a step, and the recipe continues with the next one", async () => {
  await storeKey();
  const plain = scene.site.url("/plain.html");
  const steps = [
    navigate(scene.site.url("/form.html")),
    {
      description: "The plain page is shown.",
      ...interact({ kind: "tap", selector: "#nothing" }, { timeout_ms: 200 }),
    },
    waitFor({ kind: "url", pattern: "**/plain.html" }, { timeout_ms: 20_000 }),
    { do: { kind: "capture", capture_kind: "pdf", file_name: "plain.pdf" } },
  ];
  say(
    call("navigate", { url: plain }),
    call("resume_recipe", { next_step: 9 }),
    call("resume_recipe", { next_step: 3 }),
    call("resume_recipe", { next_step: 1 }),
    ({ results }) => ({ text: results.at(-1) ?? "" }),
  );
  await withRun({ steps, description: "Shows the plain page" }, async ({ agent, session, turn, entries }) => {
    expect(await turn()).toMatchObject({ status: "done" });
    expect(provider.asked.length).toBe(3);
    for (const part of ["Step 2 has failed", "session-timeout", "The plain page is shown.", "Shows the plain page"])
      expect(told(0)).toContain(part);
    expect(provider.asked[2]?.results.at(-1)).toContain("a whole number from 1 to 5");
    const { body: files } = await scene.rest(`${session}/files`);
    expect(files.data).toContainEqual(expect.objectContaining({ name: "plain.pdf", source: "capture" }));
    expect((await entries()).map(({ role, content }) => [role, content.name ?? ""])).toEqual([
      ["system", ""],
      ["system", "navigate"],
      ["system", "interact"],
      ["agent", "navigate"],
      ["system", "wait"],
      ["system", "capture"],
    ]);
    const { body } = await scene.rest(`${agent}/message`, { text: "Again?", wait_ms: 30_000 });
    expect(body).toMatchObject({ status: "done", text: "failed: no recipe waits for you" });
    expect(told(3)).toContain("was completed, all 4 steps");
  });
}, 60_000);

test("a model that gives up ends the recipe, and a model may retry a step", async () => {
  await storeKey();
  const stepsWith = (timeout_ms: number) => [interact({ kind: "tap", selector: "#go" }, { timeout_ms })];
  say(call("navigate", { url: scene.site.url("/form.html") }), {
    calls: [
      { name: "resume_recipe", input: { next_step: 1 } },
      { name: "done", input: { text: "That is all." } },
    ],
  });
  await withRun({ steps: stepsWith(3_000) }, async ({ turn, entries }) => {
    expect(await turn()).toMatchObject({ status: "done" });
    expect((await entries()).at(-1).content).toMatchObject({ name: "interact", arguments: { selector: "#go" } });
  });
  say(call("done", { text: "There is no such button." }));
  await withRun({ steps: stepsWith(200) }, async ({ turn }) => {
    const gaveUp = await turn();
    expect(gaveUp).toMatchObject({ status: "failed", reason: "recipe_step_failed", text: "There is no such button." });
    expect(gaveUp.error.type).toMatch(/driver-error$/);
  });
}, 60_000);

test("a recipe continues after a person has had control, and the model answers the person's message", async () => {
  await removeKey();
  const steps = [
    navigate(scene.site.url("/form.html")),
    interact({ kind: "tap", selector: "#check", count: 2 }),
    waitFor({ kind: "selector", selector: "#check:checked" }, { timeout_ms: 60_000 }),
  ];
  await withRun({ steps }, async ({ agent, turn, entries }) => {
    const isWaiting = async () => (await entries()).filter(({ content }) => content.name !== undefined).length === 2;
    expect(await waitUntil(isWaiting, { timeout: 20_000, every: 50 })).toBe(true);
    expect(slugOf(await scene.rest(`${agent}/message`, { text: "Is it checked?" }))).toBe("byok-llm-required");
    await storeKey();
    say({ text: "It is." });
    expect((await scene.rest(`${agent}/message`, { text: "Is it checked?" })).body.status).toBe("running");
    await scene.rest(`${agent}/takeover`, { client_id: "anna" });
    const events = [
      { kind: "key_down", key: " ", code: "Space" },
      { kind: "key_up", key: " ", code: "Space" },
    ];
    expect((await scene.rest(`${agent}/input-event`, { client_id: "anna", events })).body.accepted).toBe(2);
    await scene.rest(`${agent}/handback`, { client_id: "anna" });
    expect(await turn()).toMatchObject({ status: "done", text: "It is." });
    for (const part of ["has handed it back", "was completed, all 3 steps", "Is it checked?"])
      expect(told(0)).toContain(part);
    const acts = (await entries()).filter(({ content }) => content.name !== undefined);
    expect(acts.map(({ content }) => [content.name, content.error])).toEqual(
      ["navigate", "interact", "wait"].map((name) => [name, undefined]),
    );
  });
}, 60_000);

test("a run rejects parameters that do not fit the recipe, and a recipe of another account", async () => {
  const places = "{{a}}".repeat(1_000);
  const { body } = await make({
    name: "Places",
    start_url: "{{a}}",
    parameters: [{ name: "a" }, { name: "b", value: "" }],
    steps: [type("#a", places), type("#b", "{{b}}")],
  });
  const attempt = async (request: object) => {
    const refused = await scene.rest("/v1/agent-sessions", request);
    return [refused.status, slugOf(refused), ...faultsOf(refused)];
  };
  const run = (values: object) => attempt({ recipe_id: body.id, recipe_parameters: values });
  const refusal = (...faults: readonly string[]) => [400, "validation-failed", ...faults];
  const saying = (text: string) => expect.stringMatching(text) as string;
  expect(await run({ c: "x" })).toEqual(
    refusal("recipe_parameters.c: is not a parameter of the recipe", "recipe_parameters.a: is required"),
  );
  expect(await run({ a: "https://example.com", b: "x".repeat(10_001) })).toEqual(
    refusal(saying("recipe_parameters.b")),
  );
  expect(await run({ a: "x".repeat(2_000), b: "x" })).toEqual(
    refusal(saying("must insert at most 1048576 characters")),
  );
  expect(await run({ a: "file:///x", b: "x" })).toEqual(
    refusal(saying("recipe_parameters: once filled in, start_url: must be http, https")),
  );
  expect(await run({ a: "http://{{b}}" })).toEqual(
    refusal(saying("once filled in, steps\\[1\\].do.action: give text, or clear")),
  );
  expect(await attempt({ recipe_parameters: { a: "x" } })).toEqual(refusal("recipe_parameters: requires recipe_id"));
  expect(await attempt({ recipe_id: "rcp_1" })).toEqual([404, "not-found"]);
  const { url, databaseUrl } = scene.service;
  const key = await admin({ DATABASE_URL: databaseUrl }, "create-key", "--account", randomUUID(), "--tier", "free");
  const { id } = (await restClient({ url, key })("/v1/recipes", smallRecipe)).body;
  expect(await attempt({ recipe_id: id })).toEqual([404, "not-found"]);
  expect((await scene.rest("/v1/sessions?status=live")).body.data).toMatchObject([{ id: shared }]);
}, 60_000);
