import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../../src/accounts/store.ts";
import { maxResponseTokens } from "../../../src/agents/llm/models.ts";
import { costOf, reserve, settleReservation } from "../../../src/agents/llm/spending.ts";
import { readSpending, writeSettings } from "../../../src/agents/llm/store.ts";
import { monthNamed } from "../../../src/limits/month.ts";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { clockAt } from "../../support/clock-at.ts";
import { FakeWorker } from "../../support/fake-worker.ts";
import { freePorts } from "../../support/free-port.ts";
import { LlmProvider } from "../../support/llm-provider.ts";
import { tokensOf } from "../../support/llm-wire/dialect.ts";
import { joinTeam } from "../../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { type Rest, restClient } from "../../support/rest.ts";

const workerToken = "a token of the tests alone";

const keyPath = "/v1/account/me/byok-llm-key";
const settingsPath = "/v1/account/me/bundled-llm-settings";
const bundled = {
  BUNDLED_LLM_API_KEY: "good-operators-own",
  BUNDLED_LLM_MODEL: "claude-bundled",
  BUNDLED_LLM_PRICE: "3/0.3/15",
};

let provider: LlmProvider;
let gateway: PeopleGateway;
let worker: FakeWorker;
let rest: Rest;
/** A port without a listener. */
let nobody: number;
beforeAll(async () => {
  provider = await new LlmProvider().start();
  nobody = (await freePorts("PORT")).PORT;
  const allowed = { LLM_ALLOW: `${provider.env.LLM_ALLOW},127.0.0.1:${nobody}` };
  gateway = await startPeopleGateway({ ...provider.env, ...bundled, ...allowed, WORKER_TOKEN: workerToken });
  worker = new FakeWorker({ control: `unix:${gateway.app.config.dataDir}/fleet.sock`, token: workerToken, slots: 20 });
  await worker.start();
  rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

const put = (key: object) => rest(keyPath, key, { method: "PUT" });
const patch = (settings: object) => rest(settingsPath, settings, { method: "PATCH" });
const slugOf = ({ body }: { readonly body: { readonly type?: string } }) => body.type?.split("/").at(-1);

test("a stored key replaces the previous one, is sealed, and shows only its last characters", async () => {
  expect([(await rest(keyPath)).status, (await rest(`${keyPath}/test`, {})).status]).toEqual([404, 404]);
  await put({ provider: "openai", api_key: "good-first-key" });
  const stored = await put({ provider: "anthropic", api_key: "good-second-x7Qa", model: "claude-test" });
  expect(stored.body).toMatchObject({ provider: "anthropic", key_suffix: "x7Qa", model: "claude-test", vision: true });
  expect(stored.body).toMatchObject({ base_url: null, tested_at: null, test_ok: null, last_used_at: null });
  expect((await rest(keyPath)).body).toEqual(stored.body);
  const rows = await gateway.app.db.sql.selectFrom("llm_keys").selectAll().execute();
  expect(rows.map((row) => row.api_key.toString("latin1")).join()).not.toContain("good-second");
  expect((await rest(keyPath, undefined, { method: "DELETE" })).status).toBe(204);
  expect(slugOf(await rest(keyPath, undefined, { method: "DELETE" }))).toBe("not-found");
});

test.each(["anthropic", "openai", "google"])(
  "the check of a %s key distinguishes a wrong key, a refused model and success",
  async (name) => {
    await put({ provider: name, api_key: "wrong-key-x7Qa" });
    const wrong = await rest(`${keyPath}/test`, {});
    expect(wrong.body).toMatchObject({ ok: false, reason: "wrong_key", error: expect.any(String) });
    expect(JSON.stringify(wrong.body)).not.toContain("wrong-key-x7Qa");
    expect((await rest(keyPath)).body).toMatchObject({ test_ok: false, tested_at: expect.any(String) });
    await put({ provider: name, api_key: "good-key-x7Qa", model: "unknown-model" });
    expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({
      ok: false,
      reason: "model_refused",
      model: "unknown-model",
    });
    await put({ provider: name, api_key: "good-key-x7Qa" });
    expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: true, error: null, reason: null });
    expect((await rest(keyPath)).body.test_ok).toBe(true);
    provider.script = () => ({ status: 529 });
    expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: false, reason: "busy" });
    provider.script = () => ({ text: "Hi" });
  },
);

test("a custom provider is called at its address, which must be public or allowed", async () => {
  const own = { provider: "openai_compatible", api_key: "good-key-x7Qa", model: "own" };
  expect((await put(own)).status).toBe(400);
  expect((await put({ ...own, provider: "openai", base_url: provider.origin })).status).toBe(400);
  for (const base_url of ["http://127.0.0.1:1/v1", "https://10.0.0.1/v1", "https://u:p@example.com/v1", "nonsense"])
    expect((await put({ ...own, base_url })).body.errors, base_url).toMatchObject([{ field: "base_url" }]);
  expect((await put({ ...own, base_url: `${provider.origin}/v1` })).body.vision).toBe(false);
  expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: true, model: "own" });
  const stored = await put({ ...own, api_key: "wrong-key-x7Qa", base_url: `${provider.origin}/v1`, vision: true });
  expect(stored.body.vision).toBe(true);
  expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: false, reason: "wrong_key" });
});

test("the check reports an address without a listener", async () => {
  const base_url = `http://127.0.0.1:${nobody}`;
  expect((await put({ provider: "openai_compatible", api_key: "good-key", model: "own", base_url })).status).toBe(200);
  expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: false, reason: "unreachable" });
});

test("the bundled LLM requires consent, yields to a stored key, and stops at the monthly cap", async () => {
  await rest(keyPath, undefined, { method: "DELETE" });
  const status = async () => (await rest("/v1/account/me/bundled-llm-status")).body;
  expect(await status()).toMatchObject({
    available: true,
    bundled_llm_consent: false,
    model: "claude-bundled",
    next_credential: null,
    monthly_cap_cents: 2_000,
    used_cents: 0,
    remaining_cents: 2_000,
    currency: "usd",
  });
  expect((await patch({ bundled_llm_consent: null })).status).toBe(400);
  expect((await patch({ bundled_llm_consent: true, monthly_cap_cents: 50 })).body).toMatchObject({
    bundled_llm_consent: true,
    monthly_cap_cents: 50,
    consented_at: expect.any(String),
  });
  expect((await status()).next_credential).toBe("bundled");
  const [account] = await gateway.app.db.sql.selectFrom("llm_settings").select("account_id").execute();
  const month = `${new Date(gateway.now()).toISOString().slice(0, 7)}-01`;
  const spending = { account_id: account?.account_id ?? "", month, spent: "600000" };
  await gateway.app.db.sql.insertInto("llm_spending").values(spending).execute();
  expect(await status()).toMatchObject({ next_credential: null, used_cents: 60, remaining_cents: 0 });
  await put({ provider: "anthropic", api_key: "good-key-x7Qa" });
  expect((await status()).next_credential).toBe("byok");
  expect((await patch({ monthly_cap_cents: null })).body.monthly_cap_cents).toBe(2_000);
});

test("members read the cost of the LLM but cannot change it", async () => {
  const { rest: asMember } = await joinTeam(gateway.url, gateway.mailbox, rest);
  expect((await asMember(settingsPath)).status).toBe(200);
  const refused = [
    await asMember(keyPath, { provider: "anthropic", api_key: "good-key-x7Qa" }, { method: "PUT" }),
    await asMember(keyPath, undefined, { method: "DELETE" }),
    await asMember(settingsPath, { bundled_llm_consent: true }, { method: "PATCH" }),
  ];
  expect(refused.map(slugOf)).toEqual(["forbidden", "forbidden", "forbidden"]);
});

test("one of several concurrent calls exceeds the cap, and each is charged to the month of its start", async () => {
  const { db } = gateway.app;
  const id = gateway.app.ids.next("acc");
  await db.transaction((tx) => insertAccount(tx, { id, name: "Test", tier: "personal" }));
  await db.transaction((tx) => writeSettings(tx, id, { consent: true, monthly_cap_cents: 10 }));
  let now = Date.parse("2026-11-30T23:59:59.999Z");
  const clock = clockAt(() => now);
  const putAside = () => db.transaction((tx) => reserve(tx, clock, id, 60_000));
  const calls = await Promise.allSettled(Array.from({ length: 20 }, putAside));
  const reserved = calls.flatMap((call) => (call.status === "fulfilled" ? call.value : []));
  const refused = calls.flatMap((call) => (call.status === "rejected" ? call.reason.slug : []));
  expect([reserved.length, new Set(refused)]).toEqual([2, new Set(["bundled-llm-budget-exhausted"])]);
  now += 1;
  const usage = { input: 1_000, cached: 900, written: 0, output: 100 };
  const price = { input: 3, cachedInput: 0.3, cacheWrite: 3, output: 15 };
  for (const each of reserved) await db.transaction((tx) => settleReservation(tx, each, costOf(usage, price)));
  const months = ["2026-11", "2026-12"].map(monthNamed);
  expect(await Promise.all(months.map((month) => readSpending(db, id, month)))).toEqual([2 * 2_070, 0]);
  expect((await putAside()).month.name).toBe("2026-12");
});

/** Creates an account that may spend `cap` cents a month on the bundled LLM. */
async function spender(cap: number) {
  const person = await gateway.signUp();
  const { body: key } = await person.rest("/v1/api-keys", { name: "spender" });
  await gateway.admin("set-tier", "--account", person.accountId, "--tier", "api_builder");
  const own = restClient({ url: gateway.url, key: key.key });
  await own(settingsPath, { bundled_llm_consent: true, monthly_cap_cents: cap }, { method: "PATCH" });
  const agent = async () => {
    const { body } = await own("/v1/agent-sessions", {});
    return `/v1/agent-sessions/${body.id}`;
  };
  const used = async () => (await own("/v1/account/me/bundled-llm-status")).body.used_cents;
  const spentIn = (month: string) => readSpending(gateway.app.db, person.accountId, monthNamed(month));
  const say = async (path: string, text: string) => (await own(`${path}/message`, { text, wait_ms: 60_000 })).body;
  return { rest: own, accountId: person.accountId, agent, used, spentIn, say };
}

/** The answer to a new account's message, and the provider's received requests. */
async function sayWith(header: string, { model, stored }: { model?: string; stored?: object } = {}) {
  const own = restClient({ url: gateway.url, key: (await gateway.signUp()).accessToken });
  if (stored) await own(keyPath, stored, { method: "PUT" });
  const { body: agent } = await own("/v1/agent-sessions", model === undefined ? {} : { model });
  provider.asked.length = 0;
  provider.script = () => ({ text: "Hello." });
  const headers = { "x-byok-llm-api-key": header };
  const { body } = await own(`/v1/agent-sessions/${agent.id}/message`, { text: "Hi", wait_ms: 60_000 }, { headers });
  return { body, asked: provider.asked.map((each) => [each.key, each.model, each.dialect]) };
}

test.each([
  ["the session's model", "good-key", { model: "google/gemini-own" }, ["gemini-own", "google"]],
  [
    "the stored key",
    "sk-ant-of-another",
    { stored: { provider: "openai", api_key: "good-key", model: "gpt-own" } },
    ["gpt-own", "openai"],
  ],
  ["the prefix sk-ant-", "sk-ant-key", {}, ["claude-haiku-4-5", "anthropic"]],
  ["the prefix sk-", "sk-key", {}, ["gpt-5-mini", "openai"]],
  ["the prefix AIza", "AIza-key", {}, ["gemini-2.5-flash", "google"]],
  ["the prefix sk- with a model", "sk-key", { model: "gpt-own" }, ["gpt-own", "openai"]],
])("a key in the header is sufficient, with the provider of %s", async (_, header, choice, used) => {
  const { body, asked } = await sayWith(header, choice);
  expect([body.status, asked]).toEqual(["done", [[header, ...used]]]);
});

test("a header key that matches no provider is refused with a bad-request that names the model", async () => {
  const { body, asked } = await sayWith("good-key");
  expect([slugOf({ body }), body.errors, asked]).toMatchObject(["bad-request", [{ field: "model" }], []]);
});

test("a refusal of the bundled LLM reports the reason and the next step", async () => {
  const { rest: own, accountId } = await spender(0);
  const { body: agent } = await own("/v1/agent-sessions", {});
  const say = async () => (await own(`/v1/agent-sessions/${agent.id}/message`, { text: "Hi" })).body;
  const exhausted = await say();
  expect([slugOf({ body: exhausted }), exhausted.detail]).toEqual([
    "bundled-llm-budget-exhausted",
    expect.stringMatching(
      /cap of 0 cents for the bundled LLM is reached: raise monthly_cap_cents, .* or wait until \d{4}-\d\d-01T00:00/,
    ),
  ]);
  await gateway.app.db.transaction((tx) => writeSettings(tx, accountId, { consent: false }));
  const refused = await say();
  expect([slugOf({ body: refused }), refused.detail]).toEqual([
    "bundled-llm-consent-required",
    expect.stringContaining("or PATCH /v1/account/me/bundled-llm-settings with bundled_llm_consent true"),
  ]);
});

/** Upper bound of a request's cost in millionths of a dollar, by the token count of the test provider. */
const worstCaseOf = (body: unknown): number => tokensOf(body) * 3 + maxResponseTokens * 15;

test("a cut or abandoned call costs the turn and the account its reservation, which is an upper bound", async () => {
  const { rest: own, agent, spentIn, say } = await spender(100);
  const month = new Date(gateway.now()).toISOString().slice(0, 7);
  provider.asked.length = 0;
  provider.script = (_, index) => [{ cut: true as const }, { status: 529 }][index] ?? { text: "At last." };
  const path = await agent();
  const turn = await say(path, "Hello?");
  expect(turn).toMatchObject({ status: "done", text: "At last." });
  const before = await spentIn(month);
  expect(turn.cost_cents).toBe(Math.ceil(before / 10_000));
  provider.script = () => ({ silent: true });
  const { body: begun } = await own(`${path}/message`, { text: "And now?" });
  expect(await waitUntil(() => provider.asked.length === 4, { timeout: 10_000, every: 20 })).toBe(true);
  const { body: left } = await own(`${path}/turns/${begun.turn_id}/cancel`, {});
  const cost = (await spentIn(month)) - before;
  expect(left).toMatchObject({ status: "cancelled", cost_cents: Math.ceil(cost / 10_000) });
  expect(cost).toBeGreaterThan(worstCaseOf(provider.asked[3]?.body));
});

test("one of two concurrent turns makes the last call below the cap, and both end at the limit", async () => {
  const { agent, used, say } = await spender(10);
  const usage = { input: 2_000, output: 1_000 };
  const seen: number[] = [];
  provider.asked.length = 0;
  provider.script = async () => {
    seen.push(await used());
    return { calls: [{ name: "observe", input: {} }], usage };
  };
  const agents = [await agent(), await agent()];
  const turns = await Promise.all(agents.map((path) => say(path, "Look around.")));
  for (const turn of turns) expect(turn).toMatchObject({ status: "limit_reached", reason: "cost_cents" });
  // A call costs 2.1 cents and reserves 7 or 8, so concurrent calls exceed the cap by less than one reservation.
  expect(Math.max(...seen)).toBeLessThan(10 + 9);
  expect(seen.length).toBeGreaterThan(2);
  expect(await used()).toBeLessThanOrEqual(10 + 3);
  expect(turns.reduce((sum, { steps }) => sum + steps, 0)).toBe(seen.length);
});

test("a turn that spans two months is charged to each month by the start of its calls", async () => {
  const { agent, spentIn, say } = await spender(100);
  const now = new Date(gateway.now());
  const next = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
  const months = [gateway.now(), next].map((at) => new Date(at).toISOString().slice(0, 7));
  gateway.pass(next - gateway.now() - 60_000);
  const path = await agent();
  const look = { calls: [{ name: "observe", input: {} }] };
  const answers = [
    { ...look, usage: { input: 1_000, output: 100 } },
    { ...look, usage: { input: 2_000, output: 200 } },
    { text: "All seen.", usage: { input: 4_000, output: 400 } },
  ];
  provider.asked.length = 0;
  provider.script = (_, index) => {
    if (index === 1) gateway.pass(80_000);
    return answers[index] ?? {};
  };
  // 4,500 and 9,000 were requested in the first month, though the second call was answered in the next (18,000).
  expect(await say(path, "Look around.")).toMatchObject({ status: "done", text: "All seen.", cost_cents: 4 });
  expect(await Promise.all(months.map((month) => spentIn(month ?? "")))).toEqual([13_500, 18_000]);
});
