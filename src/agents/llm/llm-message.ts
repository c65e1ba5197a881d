import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type BundledLlmSettings,
  BundledLlmSettingsSchema,
  type ByokLlmKey,
  ByokLlmKeySchema,
  LlmProvider,
} from "../../gen/pilothouse/v1/llm_settings_pb.ts";
import type { LlmKeyRow, LlmSettings } from "./store.ts";
import type { StoredProvider } from "./tables.ts";

/** Default monthly cap in US cents. */
const defaultCap = 2_000;

/** Returns the monthly cap in US cents: the setting, or else the default. */
export const capOf = ({ monthly_cap_cents: cap }: LlmSettings): number => cap ?? defaultCap;

const providers: Readonly<Record<StoredProvider, LlmProvider>> = {
  anthropic: LlmProvider.ANTHROPIC,
  openai: LlmProvider.OPENAI,
  google: LlmProvider.GOOGLE,
  openai_compatible: LlmProvider.OPENAI_COMPATIBLE,
};

export function toStoredProvider(provider: LlmProvider): StoredProvider {
  const found = (Object.keys(providers) as StoredProvider[]).find((name) => providers[name] === provider);
  if (!found) throw new Error(`no provider has the number ${provider}`);
  return found;
}

/** Converts a key to its message, which contains only the last characters of the key. */
export function toLlmKeyMessage(row: LlmKeyRow): ByokLlmKey {
  return create(ByokLlmKeySchema, {
    provider: providers[row.provider],
    keySuffix: row.key_suffix,
    createdAt: timestampFromDate(row.created_at),
    ...(row.base_url !== null && { baseUrl: row.base_url }),
    ...(row.model !== null && { model: row.model }),
    vision: row.vision ?? row.provider !== "openai_compatible",
    ...(row.tested_at && { testedAt: timestampFromDate(row.tested_at) }),
    ...(row.test_ok !== null && { testOk: row.test_ok }),
    ...(row.last_used_at && { lastUsedAt: timestampFromDate(row.last_used_at) }),
  });
}

export function toSettingsMessage(settings: LlmSettings): BundledLlmSettings {
  return create(BundledLlmSettingsSchema, {
    bundledLlmConsent: settings.consent,
    monthlyCapCents: capOf(settings),
    currency: "usd",
    ...(settings.consented_at && { consentedAt: timestampFromDate(settings.consented_at) }),
    ...(settings.updated_at && { updatedAt: timestampFromDate(settings.updated_at) }),
  });
}
