import { afterAll, beforeAll, expect, test } from "vitest";
import { type LendScene, startLendScene } from "../support/lend-scene.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import type { Answer } from "../support/rest.ts";
import { smallRecipe } from "../support/small-recipe.ts";

let provider: LlmProvider;
let scene: LendScene;
beforeAll(async () => {
  provider = await new LlmProvider().start();
  scene = await startLendScene(provider.env);
}, 120_000);
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
}, 60_000);

const slugOf = ({ body }: Answer): string | undefined => body.type?.split("/").at(-1);
const faultsOf = ({ body }: Answer) =>
  (body.errors ?? []).map(({ field, message }: Record<string, string>) => `${field}: ${message}`);
const make = (recipe: object, init?: RequestInit) => scene.rest("/v1/recipes", recipe, init);

const interact = (action: object, more: object = {}) => ({ do: { kind: "interact", action, ...more } });
const type = (selector: string, text: string) => interact({ kind: "type", selector, text });
const navigate = (url: string) => ({ do: { kind: "navigate", url } });
const waitFor = (condition: object, more: object = {}) => ({ do: { kind: "wait", condition, ...more } });

test("a recipe is made, fetched, listed and deleted; a request that is sent again makes no second one", async () => {
  const request = {
    ...{ name: "Order tickets", description: "Two of them", start_url: "https://example.com/{{city}}" },
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
    ...{ has_more: false, next_cursor: null },
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
  ["no steps", { ...smallRecipe, steps: [] }, /^steps: /],
  ["101 steps", { ...smallRecipe, steps: Array(101).fill(navigate("about:blank")) }, /^steps: /],
  ["a step that does nothing", { ...smallRecipe, steps: [{ description: "Nothing." }] }, /^steps\[0\].do: is required/],
  ["a kind that there is not", { ...smallRecipe, steps: [{ do: { kind: "dance" } }] }, /^steps\[0\].do/],
  ["an action of no kind", { ...smallRecipe, steps: [{ do: { kind: "interact" } }] }, /^steps\[0\].do.action: /],
  ["33 parameters", { ...smallRecipe, parameters: Array(33).fill({ name: "a" }) }, /^parameters: /],
  ["a parameter of no name", { ...smallRecipe, parameters: [{ name: "a-b" }] }, /^parameters\[0\].name: /],
  [
    "a name twice",
    { ...smallRecipe, parameters: [{ name: "a" }, { name: "a" }] },
    /^parameters\[1\].name: is the name/,
  ],
  ["a place for nothing", { ...smallRecipe, steps: [type("#a", "{{b}}")] }, /^steps\[0\].do.action.text: .* b, which/],
  ["an address without scheme", { ...smallRecipe, start_url: "example.com" }, /^start_url: is not an absolute URL/],
  [
    "an address of a file",
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
  ["too long a text", { ...smallRecipe, steps: Array(3).fill(type("#a", "a".repeat(99_999))) }, /^steps: are longer/],
])("a recipe with %s is refused where the fault is", async (_, recipe, fault) => {
  const refused = await make(recipe);
  expect([refused.status, slugOf(refused)]).toEqual([400, "validation-failed"]);
  expect(faultsOf(refused)).toEqual([expect.stringMatching(fault)]);
});
