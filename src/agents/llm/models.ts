import type { LanguageModel } from "ai";
import type { Config } from "../../platform/config.ts";
import { failFields } from "../../platform/errors.ts";
import { FetchFault } from "../../platform/outgoing/fetch-fault.ts";
import { SafeFetch, type SafeFetchOptions } from "../../platform/outgoing/safe-fetch.ts";
import { asFetch } from "./safe-models-fetch.ts";
import type { StoredProvider } from "./tables.ts";

export interface LlmCredential {
  readonly provider: StoredProvider;
  readonly apiKey: string;
  /** Base URL; null for all providers but `openai_compatible`. */
  readonly baseUrl: string | null;
}

/** Models of all providers. Their requests go through `SafeFetch`. */
export interface Models {
  of(credential: LlmCredential, model: string): Promise<LanguageModel>;
  /** Throws `bad-request` if the base URL is not allowed. */
  check(baseUrl: string): Promise<void>;
  /** Closes all connections. */
  stop(): void;
}

/** Base URLs of providers; an operator can replace them with those of a proxy (`LLM_ADDRESSES`). */
const addresses: Readonly<Record<Exclude<StoredProvider, "openai_compatible">, string>> = {
  anthropic: "https://api.anthropic.com/v1",
  openai: "https://api.openai.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
};

/** Model of each provider that is used if neither the request nor the stored key names a model. */
export const defaultModels: Readonly<Record<StoredProvider, string | undefined>> = {
  anthropic: "claude-haiku-4-5",
  openai: "gpt-5-mini",
  google: "gemini-2.5-flash",
  openai_compatible: undefined,
};

/** Maximum tokens of a response. */
export const maxResponseTokens = 4_096;

export interface ModelsOptions extends Pick<SafeFetchOptions, "resolve" | "ca" | "proxy"> {
  readonly config: Pick<Config, "llmAllow" | "llmAddresses">;
}

export function createModels({ config, ...options }: ModelsOptions): Models {
  const safe = new SafeFetch({ allow: config.llmAllow, ...options });
  const fetch = asFetch(safe);
  // The base URLs are explicit, because the packages would otherwise read them from the environment.
  const at = { ...addresses, ...config.llmAddresses };
  return {
    // Provider packages are loaded on first use, to keep startup fast.
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
      if (baseUrl === null) throw new Error("an OpenAI-compatible provider has no base URL");
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...settings, name: provider, baseURL: baseUrl, includeUsage: true })(model);
    },
    async check(baseUrl) {
      await safe.check(baseUrl).catch((fault: unknown) => {
        if (!(fault instanceof FetchFault)) throw fault;
        // A host name that does not resolve now may resolve later, so the base URL is accepted.
        if (fault.reason === "address_not_allowed") throw failFields("bad-request", { base_url: fault.message });
      });
    },
    stop: () => safe[Symbol.dispose](),
  };
}
