import { expect, test } from "vitest";
import { llmPriceOf } from "../../../src/agents/llm/llm-prices.ts";
import { costOf, type LlmUsage } from "../../../src/agents/llm/spending.ts";
import type { StoredProvider } from "../../../src/agents/llm/tables.ts";

const cost = (provider: StoredProvider, model: string, usage: Partial<LlmUsage>): number | undefined => {
  const used = { input: 0, cached: 0, written: 0, output: 0, ...usage };
  const price = llmPriceOf({ source: "byok", provider, model }, undefined, used.input);
  return price && costOf(used, price);
};

test.each([
  ["anthropic", "claude-haiku-4-5", { input: 1_000, output: 100 }, 1_500],
  ["anthropic", "claude-haiku-4-5-20251001", { input: 1_000, cached: 500, written: 400 }, 100 + 50 + 500],
  ["anthropic", "claude-haiku-5-5", { input: 100_000 }, 10_000],
  ["anthropic", "claude-haiku-5-5", { input: 100_001 }, 50_001],
  ["openai", "gpt-5-mini-2025-08-07", { input: 1_000, cached: 1_000, output: 1_000 }, 2_025],
  ["google", "gemini-2.5-flash", { input: 1_000, written: 1_000 }, 300],
  ["google", "gpt-5-mini", {}, undefined],
  ["openai_compatible", "gpt-5-mini", {}, undefined],
] as const)("of %s, %s costs for %j %i millionths of a dollar", (provider, model, usage, expected) => {
  expect(cost(provider, model, usage)).toBe(expected);
});

test("a call of the bundled LLM costs the configured price", () => {
  const price = { input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15 };
  const bundled = { provider: "anthropic", apiKey: "", model: "claude-haiku-4-5", baseUrl: null, price } as const;
  expect(llmPriceOf({ source: "bundled", provider: "anthropic", model: "claude-haiku-4-5" }, bundled)).toBe(price);
});
