import { monthAt } from "../../limits/month.ts";
import type { Config } from "../../platform/config.ts";
import { fail, failFields } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Queryable } from "../../platform/postgres/database.ts";
import { openLlmKey } from "./credentials.ts";
import { capOf } from "./llm-message.ts";
import { defaultModels, type LlmCredential } from "./models.ts";
import { capReached } from "./spending.ts";
import { findLlmKey, type LlmKeyRow, readSettings, readSpending } from "./store.ts";
import type { StoredProvider } from "./tables.ts";

/** Credential that pays for model calls, and the model to call. */
export interface Payer {
  readonly source: "header" | "byok" | "bundled";
  readonly provider: StoredProvider;
  /** Model name of the provider. */
  readonly model: string;
  /** Whether the model accepts pictures. */
  readonly vision: boolean;
}

export interface PayerParts extends Pick<PlatformParts, "sealer" | "clock"> {
  readonly config: Pick<Config, "bundledLlm">;
}

const microsPerCent = 10_000;

/** Parses a model name, which may start with its provider: `anthropic/claude-haiku-4-5`. */
function readModel(name: string | undefined): { provider?: StoredProvider; model?: string } {
  const [, provider, model] = /^(anthropic|openai|google)\/(.+)$/.exec(name ?? "") ?? [];
  if (provider === undefined || model === undefined) return name === undefined ? {} : { model: name };
  return { provider: provider as StoredProvider, model };
}

/**
 * Guesses the provider from the prefix of a key. Used only if neither the request nor a stored key names the provider.
 */
function providerByPrefix(apiKey: string): StoredProvider | undefined {
  if (apiKey.startsWith("sk-ant-")) return "anthropic";
  if (apiKey.startsWith("sk-")) return "openai";
  return apiKey.startsWith("AIza") ? "google" : undefined;
}

/**
 * Returns the first model that is set in `named`, or else the provider's default. Throws `bad-request` if there is
 * neither.
 */
function modelOf(provider: StoredProvider, ...named: readonly (string | null | undefined)[]): string {
  const model = named.find((name) => typeof name === "string") ?? defaultModels[provider];
  if (model === undefined || model === null)
    throw failFields("bad-request", { model: "is required: the provider has no default model" });
  return model;
}

/**
 * Chooses the credential that pays for model calls: the key of the request header, the stored key, or the bundled LLM.
 * Throws if none of them can be used.
 */
export async function choosePayer(
  db: Queryable,
  { clock, config }: PayerParts,
  { accountId, named, header }: { accountId: string; named: string | undefined; header: string | undefined },
): Promise<Payer> {
  const wanted = readModel(named);
  const key = await findLlmKey(db, accountId);
  if (header !== undefined) {
    const provider = wanted.provider ?? key?.provider ?? providerByPrefix(header);
    if (!provider)
      throw failFields("bad-request", {
        model: "must name the provider of the key in x-byok-llm-api-key, as anthropic/claude-haiku-4-5 does",
      });
    const vision = visionOf(provider, key);
    return { source: "header", provider, model: modelOf(provider, wanted.model, key?.model), vision };
  }
  if (key && matchesProvider(key, wanted.provider)) {
    const { provider } = key;
    return {
      source: "byok",
      provider,
      model: modelOf(provider, wanted.model, key.model),
      vision: visionOf(provider, key),
    };
  }
  const { bundledLlm: bundled } = config;
  if (!bundled)
    throw fail(
      "byok-llm-required",
      {},
      {
        detail:
          "the account has no LLM key for this model: store one at /v1/account/me/byok-llm-key, or send one in x-byok-llm-api-key",
      },
    );
  if (wanted.model !== undefined && wanted.model !== bundled.model)
    throw fail(
      "byok-llm-required",
      {},
      {
        detail: `the bundled LLM is ${bundled.model}: omit model, or store your own key for ${wanted.model}`,
      },
    );
  const settings = await readSettings(db, accountId);
  if (!settings.consent) {
    const detail =
      "the account has no LLM key for this model and no consent to the bundled LLM: store a key, send one in x-byok-llm-api-key, or PATCH /v1/account/me/bundled-llm-settings with bundled_llm_consent true";
    throw fail("bundled-llm-consent-required", {}, { detail });
  }
  const month = monthAt(clock.now());
  const spent = await readSpending(db, accountId, month);
  if (spent >= capOf(settings) * microsPerCent) throw capReached(capOf(settings), month);
  const vision = visionOf(bundled.provider, undefined);
  return { source: "bundled", provider: bundled.provider, model: bundled.model, vision };
}

/**
 * Returns whether the models of a provider accept pictures: the stored setting, or else true except for
 * `openai_compatible`.
 */
function visionOf(provider: StoredProvider, key: LlmKeyRow | undefined): boolean {
  const stored = key?.provider === provider ? key.vision : null;
  return stored ?? provider !== "openai_compatible";
}

const matchesProvider = (key: LlmKeyRow, provider: StoredProvider | undefined): boolean =>
  provider === undefined || provider === key.provider;

/**
 * Returns the credential of a payer. Returns undefined if the stored key was deleted, was replaced by a key of another
 * provider, or can no longer be decrypted. Returns undefined for the source `header` if the request has no key, and for
 * `bundled` if the operator no longer provides the bundled LLM.
 */
export async function credentialOf(
  db: Queryable,
  { sealer, config }: PayerParts,
  { source, provider }: Payer,
  accountId: string,
  header: string | undefined,
): Promise<LlmCredential | undefined> {
  if (source === "bundled") return config.bundledLlm;
  const key = await findLlmKey(db, accountId);
  const isSame = key?.provider === provider;
  if (source === "header")
    return header === undefined ? undefined : { provider, apiKey: header, baseUrl: isSame ? key.base_url : null };
  return isSame ? openLlmKey(sealer, key) : undefined;
}
