import { ConfigError, type EnvironmentReader } from "./environment.ts";

/** Providers with a configurable base URL. */
const llmAddressed = ["anthropic", "openai", "google"] as const;
type LlmAddressed = (typeof llmAddressed)[number];

/** Base URLs that replace those of providers. */
export type LlmAddresses = Readonly<Partial<Record<LlmAddressed, string>>>;

/** US dollars per million tokens. */
export interface LlmPrice {
  readonly input: number;
  readonly cachedInput: number;
  /** Input that is written to the provider's cache. */
  readonly cacheWrite: number;
  readonly output: number;
}

/** LLM that the operator pays for. */
export interface BundledLlmConfig {
  readonly provider: LlmAddressed | "openai_compatible";
  readonly apiKey: string;
  readonly model: string;
  /** Set for `openai_compatible` only. */
  readonly baseUrl: string | null;
  readonly price: LlmPrice;
}

/** Reads `provider=address` items. */
export function readLlmAddresses(read: EnvironmentReader): LlmAddresses {
  const pattern = new RegExp(`^(${llmAddressed.join("|")})=(https?://.+)$`);
  const isItem = (item: string): boolean => URL.canParse(pattern.exec(item)?.[2] ?? "");
  const items = read.list("LLM_ADDRESSES", `\`provider=https://...\` of ${llmAddressed.join(", ")}`, isItem);
  return Object.fromEntries(
    items.map((item) => [pattern.exec(item)?.[1], pattern.exec(item)?.[2]?.replace(/\/+$/, "")]),
  );
}

/** Reads the bundled LLM. Its price is required, because spending caps depend on it. */
export function readBundledLlm(read: EnvironmentReader): BundledLlmConfig | undefined {
  const apiKey = read.text("BUNDLED_LLM_API_KEY");
  if (apiKey === undefined) return undefined;
  const provider = read.oneOf("BUNDLED_LLM_PROVIDER", [...llmAddressed, "openai_compatible"], "anthropic");
  const model = read.text("BUNDLED_LLM_MODEL");
  if (model === undefined) throw new ConfigError("BUNDLED_LLM_MODEL", "is required with BUNDLED_LLM_API_KEY");
  const baseUrl = read.url("BUNDLED_LLM_BASE_URL", ["https:", "http:"]) ?? null;
  if ((provider === "openai_compatible") !== (baseUrl !== null))
    throw new ConfigError(
      "BUNDLED_LLM_BASE_URL",
      "is required for `openai_compatible`, and not accepted for other providers",
    );
  const prices = (read.text("BUNDLED_LLM_PRICE") ?? "").split("/").map(Number);
  const [input = Number.NaN, cachedInput = Number.NaN, output = Number.NaN, cacheWrite = input] = prices;
  if (prices.length < 3 || prices.length > 4 || prices.some((price) => !(price >= 0 && price < 10_000)))
    throw new ConfigError(
      "BUNDLED_LLM_PRICE",
      "accepts US dollars per million tokens of input, cached input, output and cache writes, such as `3/0.3/15/3.75`",
    );
  return { provider, apiKey, model, baseUrl, price: { input, cachedInput, output, cacheWrite } };
}
