import { afterAll, beforeAll, expect, test } from "vitest";
import { insertAccount } from "../../src/accounts/store.ts";
import { monthNamed } from "../../src/limits/month.ts";
import { costOf, reserve, settle } from "../../src/llm/spending.ts";
import { readSpending, writeSettings } from "../../src/llm/store.ts";
import { freePorts } from "../support/free-port.ts";
import { LlmProvider } from "../support/llm-provider.ts";
import { joinTeam } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Rest, restClient } from "../support/rest.ts";

const keyPath = "/v1/account/me/byok-llm-key";
const settingsPath = "/v1/account/me/bundled-llm-settings";
const bundled = {
  ...{ BUNDLED_LLM_API_KEY: "good-operators-own", BUNDLED_LLM_MODEL: "claude-bundled" },
  BUNDLED_LLM_PRICE: "3/0.3/15",
};

let provider: LlmProvider;
let gateway: PeopleGateway;
let rest: Rest;
/** A port at which nobody listens. */
let nobody: number;
beforeAll(async () => {
  provider = await new LlmProvider().start();
  nobody = (await freePorts("PORT")).PORT;
  const allowed = { LLM_ALLOW: `${provider.env.LLM_ALLOW},127.0.0.1:${nobody}` };
  gateway = await startPeopleGateway({ ...provider.env, ...bundled, ...allowed });
  rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
}, 60_000);
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await provider?.[Symbol.asyncDispose]();
});

const put = (key: object) => rest(keyPath, key, { method: "PUT" });
const patch = (settings: object) => rest(settingsPath, settings, { method: "PATCH" });
const slugOf = ({ body }: { readonly body: { readonly type?: string } }) => body.type?.split("/").at(-1);

test("a key is stored in place of any other, sealed, and shown by its last characters alone", async () => {
  expect([(await rest(keyPath)).status, (await rest(`${keyPath}/test`, {})).status]).toEqual([404, 404]);
  await put({ provider: "openai", api_key: "good-first-key" });
  const stored = await put({ provider: "anthropic", api_key: "good-second-x7Qa", model: "claude-test" });
  expect(stored.body).toMatchObject({ provider: "anthropic", key_suffix: "x7Qa", model: "claude-test" });
  expect(stored.body).toMatchObject({ base_url: null, tested_at: null, test_ok: null, last_used_at: null });
  expect((await rest(keyPath)).body).toEqual(stored.body);
  const rows = await gateway.app.db.sql.selectFrom("llm_keys").selectAll().execute();
  expect(rows.map((row) => row.api_key.toString("latin1")).join()).not.toContain("good-second");
  expect((await rest(keyPath, undefined, { method: "DELETE" })).status).toBe(204);
  expect(slugOf(await rest(keyPath, undefined, { method: "DELETE" }))).toBe("not-found");
});

test.each(["anthropic", "openai", "google"])(
  "a test of a key of %s tells a wrong key, a model that is refused and one that works apart",
  async (name) => {
    await put({ provider: name, api_key: "wrong-key-x7Qa" });
    const wrong = await rest(`${keyPath}/test`, {});
    expect(wrong.body).toMatchObject({ ok: false, reason: "wrong_key", error: expect.any(String) });
    expect(JSON.stringify(wrong.body)).not.toContain("wrong-key-x7Qa");
    expect((await rest(keyPath)).body).toMatchObject({ test_ok: false, tested_at: expect.any(String) });
    await put({ provider: name, api_key: "good-key-x7Qa", model: "unknown-model" });
    expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({
      ...{ ok: false, reason: "model_refused", model: "unknown-model" },
    });
    await put({ provider: name, api_key: "good-key-x7Qa" });
    expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: true, error: null, reason: null });
    expect((await rest(keyPath)).body.test_ok).toBe(true);
    provider.script = () => ({ status: 529 });
    expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: false, reason: "busy" });
    provider.script = () => ({ text: "Hi" });
  },
);

test("a provider of one's own is asked at its address, which must be public or allowed", async () => {
  const own = { provider: "openai_compatible", api_key: "good-key-x7Qa", model: "own" };
  expect((await put(own)).status).toBe(400);
  expect((await put({ ...own, provider: "openai", base_url: provider.origin })).status).toBe(400);
  for (const base_url of ["http://127.0.0.1:1/v1", "https://10.0.0.1/v1", "https://u:p@example.com/v1", "nonsense"])
    expect((await put({ ...own, base_url })).body.errors, base_url).toMatchObject([{ field: "base_url" }]);
  await put({ ...own, base_url: `${provider.origin}/v1` });
  expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: true, model: "own" });
  await put({ ...own, api_key: "wrong-key-x7Qa", base_url: `${provider.origin}/v1` });
  expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: false, reason: "wrong_key" });
});

test("an address at which nobody listens is told apart", async () => {
  const base_url = `http://127.0.0.1:${nobody}`;
  expect((await put({ provider: "openai_compatible", api_key: "good-key", model: "own", base_url })).status).toBe(200);
  expect((await rest(`${keyPath}/test`, {})).body).toMatchObject({ ok: false, reason: "unreachable" });
});

test("the bundled LLM is used with consent, after a key of one's own, up to the cap of the month", async () => {
  await rest(keyPath, undefined, { method: "DELETE" });
  const status = async () => (await rest("/v1/account/me/bundled-llm-status")).body;
  expect(await status()).toMatchObject({
    ...{ available: true, bundled_llm_consent: false, model: "claude-bundled", next_credential: null },
    ...{ monthly_cap_cents: 2_000, used_cents: 0, remaining_cents: 2_000, currency: "usd" },
  });
  expect((await patch({ bundled_llm_consent: null })).status).toBe(400);
  expect((await patch({ bundled_llm_consent: true, monthly_cap_cents: 50 })).body).toMatchObject({
    ...{ bundled_llm_consent: true, monthly_cap_cents: 50, consented_at: expect.any(String) },
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

test("members read what the LLM costs, and change none of it", async () => {
  const { rest: asMember } = await joinTeam(gateway.url, gateway.mailbox, rest);
  expect((await asMember(settingsPath)).status).toBe(200);
  const refused = [
    await asMember(keyPath, { provider: "anthropic", api_key: "good-key-x7Qa" }, { method: "PUT" }),
    await asMember(keyPath, undefined, { method: "DELETE" }),
    await asMember(settingsPath, { bundled_llm_consent: true }, { method: "PATCH" }),
  ];
  expect(refused.map(slugOf)).toEqual(["forbidden", "forbidden", "forbidden"]);
});

test("of calls beside each other one alone passes the cap, and each costs what it has used in the month it began in", async () => {
  const { db } = gateway.app;
  const id = gateway.app.ids.next("acc");
  await db.transaction((tx) => insertAccount(tx, { id, name: "Test", tier: "personal" }));
  await db.transaction((tx) => writeSettings(tx, id, { consent: true, monthly_cap_cents: 10 }));
  let now = Date.parse("2026-11-30T23:59:59.999Z");
  const clock = { now: () => now };
  const calls = await Promise.allSettled(Array.from({ length: 20 }, () => reserve(db, clock, id, 60_000)));
  const reserved = calls.flatMap((call) => (call.status === "fulfilled" ? call.value : []));
  const refused = calls.flatMap((call) => (call.status === "rejected" ? call.reason.slug : []));
  expect([reserved.length, new Set(refused)]).toEqual([2, new Set(["bundled-llm-budget-exhausted"])]);
  now += 1;
  const usage = { input: 1_000, cached: 900, written: 0, output: 100 };
  const price = { input: 3, cachedInput: 0.3, cacheWrite: 3, output: 15 };
  for (const each of reserved) await db.transaction((tx) => settle(tx, each, costOf(usage, price)));
  const months = ["2026-11", "2026-12"].map(monthNamed);
  expect(await Promise.all(months.map((month) => readSpending(db, id, month)))).toEqual([2 * 2_070, 0]);
  expect((await reserve(db, clock, id, 60_000)).month.name).toBe("2026-12");
});
