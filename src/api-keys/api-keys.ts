import type { Bus } from "../platform/bus.ts";
import type { Ids } from "../platform/ids.ts";
import type { Database, Tx } from "../platform/postgres/database.ts";
import { hashSecret } from "../platform/secrets/secrets.ts";
import { allScopes } from "./scopes.ts";
import { insertKey, revokeExpiredKeys, revokeKey } from "./store.ts";
import { newSecret, writeToken } from "./token.ts";

/** A new key; its token is shown this once. */
export interface CreatedKey {
  readonly id: string;
  readonly token: string;
}

/** Who may make which key. */
export interface KeyRequest {
  readonly accountId: string;
  readonly name: string;
  /** All scopes without it. */
  readonly scopes?: readonly string[];
  readonly expiresAt?: Date;
}

/** Makes and ends API keys. */
export interface ApiKeys {
  create(tx: Tx, request: KeyRequest): Promise<CreatedKey>;
  /** Revokes a key at once on every gateway; false when it was revoked before. */
  revoke(tx: Tx, id: string): Promise<boolean>;
  /** Marks keys that expired more than 24 hours ago as revoked. */
  sweep(): Promise<void>;
}

/** Makes the keys of a gateway. */
export function createApiKeys({ db, bus, ids }: { db: Database; bus: Bus; ids: Ids }): ApiKeys {
  return {
    async create(tx, { accountId, name, scopes = allScopes, expiresAt }) {
      const keyId = ids.next("key");
      const secret = newSecret();
      await insertKey(tx, { id: keyId, accountId, name, secretHash: hashSecret(secret), scopes, expiresAt });
      return { id: keyId, token: writeToken({ id: keyId, secret }) };
    },
    async revoke(tx, id) {
      tx.afterCommit(() => bus.publish("bearer-changed", id));
      return revokeKey(tx, id);
    },
    async sweep() {
      for (const id of await revokeExpiredKeys(db)) bus.publish("bearer-changed", id);
    },
  };
}
