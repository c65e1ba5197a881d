import { isKeyLost, type Sealer } from "../../platform/secrets/secrets-sealer.ts";
import type { LlmCredential } from "./models.ts";
import type { LlmKeyRow } from "./store.ts";

const contextOf = (accountId: string) => ({ accountId, purpose: "llm-key" });

export function sealLlmKey(sealer: Sealer, accountId: string, key: string): Buffer {
  return sealer.seal(Buffer.from(key), contextOf(accountId));
}

/** Decrypts the credential of a row. Returns undefined if the key that encrypted it is lost. */
export function openLlmKey(sealer: Sealer, row: LlmKeyRow): LlmCredential | undefined {
  try {
    const apiKey = sealer.open(row.api_key, contextOf(row.account_id)).toString();
    return { apiKey, provider: row.provider, baseUrl: row.base_url };
  } catch (error) {
    if (isKeyLost(error)) return undefined;
    throw error;
  }
}
