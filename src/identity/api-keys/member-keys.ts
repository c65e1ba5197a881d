import type { Principal } from "../../kernel/call.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { ApiKeys } from "./api-keys.ts";
import { type RevocationParts, revokeWithEvent } from "./revocation.ts";
import { type KeyCreatorId, lockKeysMadeBy, transferKey } from "./store.ts";

/** Handles the keys of users who leave an account. */
export interface MemberKeys {
  /** Revokes the keys that a user created, with an event each. Returns the keys' identifiers. */
  revoke(tx: Tx, maker: KeyCreatorId, by: Principal): Promise<string[]>;
  /** Transfers the keys of `maker` to `to`, limited to the scopes of `to`. Returns the keys' identifiers. */
  transfer(tx: Tx, maker: KeyCreatorId, to: Principal): Promise<string[]>;
}

export function createMemberKeys(parts: RevocationParts & { readonly apiKeys: ApiKeys }): MemberKeys {
  const { apiKeys, clock } = parts;
  const lockAll = (tx: Tx, maker: KeyCreatorId) => lockKeysMadeBy(tx, maker, new Date(clock.now()));

  return {
    async revoke(tx, maker, by) {
      const keys = await lockAll(tx, maker);
      for (const key of keys) await revokeWithEvent(parts, tx, key, by.kind === "key" ? by.keyId : by.userId);
      return keys.map(({ id }) => id);
    },
    async transfer(tx, maker, to) {
      const keys = await lockAll(tx, maker);
      for (const { id, scopes } of keys) {
        const kept = scopes.filter((scope) => to.scopes.has(scope));
        await transferKey(tx, id, { createdBy: to.userId ?? null, scopes: kept });
        apiKeys.publishChange(tx, id);
      }
      return keys.map(({ id }) => id);
    },
  };
}
