import type { Principal } from "../../kernel/call.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { ApiKeys } from "./api-keys.ts";
import { type RevocationParts, revokeWithEvent } from "./revocation.ts";
import { type KeyCreatorId, lockKeysCreatedBy, transferKey } from "./store.ts";

/** Handles the keys of users who leave an account. */
export interface MemberKeys {
  /** Revokes the valid keys that a user created, and appends an event for each key. Returns the keys' identifiers. */
  revoke(tx: Tx, creator: KeyCreatorId, by: Principal): Promise<string[]>;
  /**
   * Transfers the valid keys of `creator` to the caller `to`, without scopes that `to` lacks. Returns the keys'
   * identifiers.
   */
  transfer(tx: Tx, creator: KeyCreatorId, to: Principal): Promise<string[]>;
}

export function createMemberKeys(parts: RevocationParts & { readonly apiKeys: ApiKeys }): MemberKeys {
  const { apiKeys, clock } = parts;
  const lockAll = (tx: Tx, creator: KeyCreatorId) => lockKeysCreatedBy(tx, creator, new Date(clock.now()));

  return {
    async revoke(tx, creator, by) {
      const keys = await lockAll(tx, creator);
      for (const key of keys) await revokeWithEvent(parts, tx, key, by.kind === "key" ? by.keyId : by.userId);
      return keys.map(({ id }) => id);
    },
    async transfer(tx, creator, to) {
      const keys = await lockAll(tx, creator);
      for (const { id, scopes } of keys) {
        const kept = scopes.filter((scope) => to.scopes.has(scope));
        await transferKey(tx, id, { createdBy: to.userId ?? null, scopes: kept });
        apiKeys.publishChange(tx, id);
      }
      return keys.map(({ id }) => id);
    },
  };
}
