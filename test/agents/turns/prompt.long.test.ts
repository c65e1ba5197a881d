import { afterAll, beforeAll, expect, test } from "vitest";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { type LendScene, startLendScene } from "../../support/cdp-proxy-scene.ts";
import { LlmProvider } from "../../support/llm-provider.ts";

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

const steps = 40;

test("a long turn mostly repeats the previous request, and no call has 100,000 tokens", async () => {
  const call = (name: string, input: object) => ({ calls: [{ name, input }] });
  provider.script = (_, index) => {
    if (index === 0) return call("navigate", { url: scene.site.url("/wordy.html") });
    return index < steps - 1 ? call("observe", { whole: true }) : call("done", { text: "All seen." });
  };
  const key = { provider: "anthropic", api_key: "good-key-x7Qa" };
  await scene.rest("/v1/account/me/byok-llm-key", key, { method: "PUT" });
  const { body: agent } = await scene.rest("/v1/agent-sessions", {});
  const path = `/v1/agent-sessions/${agent.id}`;
  const { body: turn } = await scene.rest(`${path}/message`, { text: "Look on." });
  const hasEnded = async () => (await scene.rest(path)).body.running_turn_id === null;
  expect(await waitUntil(hasEnded, { timeout: 150_000, every: 100 })).toBe(true);
  const { body: ended } = await scene.rest(`${path}/turns/${turn.turn_id}/cancel`, {});
  expect(ended).toMatchObject({ status: "done", steps });
  // On a busy machine a snapshot may reach its time limit before its size limit.
  const largest = Math.max(...(provider.asked.at(-1)?.results ?? []).map((result) => Buffer.byteLength(result)));
  expect(largest).toBeGreaterThan(24_000);
  const sent = provider.asked.map(({ body: { tools, system, messages } }) =>
    // Cache markers move from call to call and are not part of the cached text.
    JSON.stringify({ tools, system, messages }, (name, value) => (name === "cache_control" ? undefined : value)),
  );
  let repeated = 0;
  for (const [index, text] of sent.entries()) repeated += commonLength(text, sent[index - 1] ?? "");
  const share = repeated / sent.reduce((sum, { length }) => sum + length, 0);
  // A token of this text has at least three characters.
  const max = Math.max(...sent.map(({ length }) => length)) / 3;
  console.info(`${(100 * share).toFixed(1)} % repeated, at most ${Math.round(max)} tokens a call`);
  expect(share).toBeGreaterThan(0.75);
  expect(max).toBeLessThan(100_000);
}, 180_000);

/** Length of the common prefix of two texts. */
function commonLength(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}
