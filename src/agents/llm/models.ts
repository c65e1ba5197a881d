import type { LanguageModel } from "ai";
import type { Config } from "../../platform/config.ts";
import { failFields } from "../../platform/errors.ts";
import { FetchFault } from "../../platform/outgoing/fetch-fault.ts";
import { SafeFetch, type SafeFetchOptions } from "../../platform/outgoing/safe-fetch.ts";
import { asFetch } from "./safe-models-fetch.ts";
import type { StoredProvider } from "./tables.ts";

/** What a model is called with. */
export interface LlmCredential {
  readonly provider: StoredProvider;
  readonly apiKey: string;
  /** Where the provider is, of `openai_compatible` alone. */
  readonly baseUrl: string | null;
}

/** The models of all providers, which are reached by the safe fetch alone. */
export interface Models {
  /** Gives a model of whoever the credential is for. */
  of(credential: LlmCredential, model: string): Promise<LanguageModel>;
  /** Throws `bad-request` for a base address that may not be asked. */
  check(baseUrl: string): Promise<void>;
  /** Ends all connections. */
  stop(): void;
}

/** Where providers are; an operator's proxy may stand before them (`LLM_ADDRESSES`). */
const addresses: Readonly<Record<Exclude<StoredProvider, "openai_compatible">, string>> = {
  anthropic: "https://api.anthropic.com/v1",
  openai: "https://api.openai.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
};

/** The model of who names none, and the one that a key is tried with: of each provider a small one. */
export const defaultModels: Readonly<Record<StoredProvider, string | undefined>> = {
  anthropic: "claude-haiku-4-5",
  openai: "gpt-5-mini",
  google: "gemini-2.5-flash",
  openai_compatible: undefined,
};

/** Tokens of an answer at most. */
export const longestAnswer = 4_096;

export interface ModelsOptions extends Pick<SafeFetchOptions, "resolve"> {
  readonly config: Pick<Config, "llmAllow" | "llmAddresses">;
}

/** Makes the models. */
export function createModels({ config, ...options }: ModelsOptions): Models {
  const safe = new SafeFetch({ allow: config.llmAllow, ...options });
  const fetch = asFetch(safe);
  // Each package would otherwise look for an address in the environment.
  const at = { ...addresses, ...config.llmAddresses };
  return {
    // The packages are loaded by the first who asks: a start waits for none of them.
    async of({ provider, apiKey, baseUrl }, model) {
      const settings = { apiKey, fetch };
      if (provider === "anthropic") {
        const { createAnthropic } = await import("@ai-sdk/anthropic");
        return createAnthropic({ ...settings, baseURL: at.anthropic })(model);
      }
      if (provider === "openai") {
        const { createOpenAI } = await import("@ai-sdk/openai");
        return createOpenAI({ ...settings, baseURL: at.openai })(model);
      }
      if (provider === "google") {
        const { createGoogle } = await import("@ai-sdk/google");
        return createGoogle({ ...settings, baseURL: at.google })(model);
      }
      if (baseUrl === null) throw new Error("a compatible provider has no address");
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...settings, name: provider, baseURL: baseUrl, includeUsage: true })(model);
    },
    async check(baseUrl) {
      await safe.check(baseUrl).catch((fault: unknown) => {
        if (!(fault instanceof FetchFault)) throw fault;
        // A name that does not resolve now may do so when it is needed.
        if (fault.reason === "address_not_allowed") throw failFields("bad-request", { base_url: fault.message });
      });
    },
    stop: () => safe[Symbol.dispose](),
  };
}
