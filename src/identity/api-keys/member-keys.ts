import type { Principal } from "../../kernel/call.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import type { ApiKeys } from "./api-keys.ts";
import { type RevocationParts, revokeWithEvent } from "./revocation.ts";
import { type KeyMakerId, lockKeysMadeBy, passKey } from "./store.ts";

/** Handles the keys of users who leave an account. */
export interface MemberKeys {
  /** Revokes the keys that a user created, with an event each. Returns the keys' identifiers. */
  revoke(tx: Tx, maker: KeyMakerId, by: Principal): Promise<string[]>;
  /** Transfers the keys of `maker` to `to`, limited to the scopes of `to`. Returns the keys' identifiers. */
  pass(tx: Tx, maker: KeyMakerId, to: Principal): Promise<string[]>;
}

export function createMemberKeys(parts: RevocationParts & { readonly apiKeys: ApiKeys }): MemberKeys {
  const { apiKeys, clock } = parts;
  const lockAll = (tx: Tx, maker: KeyMakerId) => lockKeysMadeBy(tx, maker, new Date(clock.now()));

  return {
    async revoke(tx, maker, by) {
      const keys = await lockAll(tx, maker);
      for (const key of keys) await revokeWithEvent(parts, tx, key, by.kind === "key" ? by.keyId : by.userId);
      return keys.map(({ id }) => id);
    },
    async pass(tx, maker, to) {
      const keys = await lockAll(tx, maker);
      for (const { id, scopes } of keys) {
        const kept = scopes.filter((scope) => to.scopes.has(scope));
        await passKey(tx, id, { createdBy: to.userId ?? null, scopes: kept });
        apiKeys.changed(tx, id);
      }
      return keys.map(({ id }) => id);
    },
  };
}
