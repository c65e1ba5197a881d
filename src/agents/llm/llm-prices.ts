import type { BundledLlmConfig, LlmPrice } from "../../platform/llm-config.ts";
import type { Payer } from "./payer.ts";
import type { StoredProvider } from "./tables.ts";

/** Price of a model; `long` applies to the whole call if its prompt exceeds `above` tokens. */
interface ModelPrice extends LlmPrice {
  readonly long?: LlmPrice & { readonly above: number };
}

const price = (input: number, cachedInput: number, output: number, cacheWrite = input): LlmPrice => ({
  input,
  cachedInput,
  output,
  cacheWrite,
});

/** Anthropic charges 25 % more for writing to its five-minute cache. */
const claude = (input: number, cachedInput: number, output: number): LlmPrice =>
  price(input, cachedInput, output, 1.25 * input);

/**
 * US dollars per million tokens of input, cached input and output, as of November 2026. Sources: for Anthropic
 * platform.claude.com/docs/en/about-claude/pricing; for OpenAI and Google price lists of 2026 that cite
 * developers.openai.com/api/docs/pricing and ai.google.dev/gemini-api/docs/pricing. Models that are not listed have no
 * known price.
 */
const prices: Readonly<Partial<Record<StoredProvider, Readonly<Record<string, ModelPrice>>>>> = {
  anthropic: {
    "claude-fable-5-1": claude(10, 0.25, 50),
    "claude-fable-5": claude(10, 1, 50),
    "claude-opus-5-5": claude(4, 0.2, 20),
    "claude-opus-5": claude(5, 0.5, 25),
    "claude-opus-4-8": claude(5, 0.5, 25),
    "claude-opus-4-7": claude(5, 0.5, 25),
    "claude-opus-4-6": claude(5, 0.5, 25),
    "claude-opus-4-5": claude(5, 0.5, 25),
    "claude-opus-4-1": claude(15, 1.5, 75),
    "claude-sonnet-5-5": claude(2, 0.1, 10),
    "claude-sonnet-5": claude(2, 0.2, 10),
    "claude-sonnet-4-6": claude(3, 0.3, 15),
    "claude-sonnet-4-5": claude(3, 0.3, 15),
    "claude-haiku-5-5": { ...claude(0.1, 0.01, 0.5), long: { above: 100_000, ...claude(0.5, 0.05, 2.5) } },
    "claude-haiku-4-5": claude(1, 0.1, 5),
  },
  openai: {
    "gpt-5.5": price(5, 0.5, 30),
    "gpt-5.4": price(2.5, 0.25, 15),
    "gpt-5.4-mini": price(0.75, 0.075, 4.5),
    "gpt-5.1": price(1.25, 0.125, 10),
    "gpt-5": price(1.25, 0.125, 10),
    "gpt-5-mini": price(0.25, 0.025, 2),
    "gpt-5-nano": price(0.05, 0.005, 0.4),
    "gpt-4.1": price(2, 0.5, 8),
    "gpt-4.1-mini": price(0.4, 0.1, 1.6),
  },
  google: {
    "gemini-2.5-pro": { ...price(1.25, 0.125, 10), long: { above: 200_000, ...price(2.5, 0.25, 15) } },
    "gemini-2.5-flash": price(0.3, 0.03, 2.5),
    "gemini-2.5-flash-lite": price(0.1, 0.01, 0.4),
  },
};

/**
 * Returns the price of a call with `promptTokens` input tokens; undefined if the price is unknown. A dated release
 * costs the same as its model.
 */
export function llmPriceOf(
  { source, provider, model }: Omit<Payer, "vision">,
  bundled: BundledLlmConfig | undefined,
  promptTokens = 0,
): LlmPrice | undefined {
  if (source === "bundled") return bundled?.price;
  const known = prices[provider]?.[model.replace(/-\d{4}-?\d{2}-?\d{2}$/, "")];
  return known?.long && promptTokens > known.long.above ? known.long : known;
}
