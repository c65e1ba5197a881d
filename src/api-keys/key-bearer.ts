import type { BearerKind, Credential } from "../identity/bearer-kind.ts";
import type { Database } from "../platform/postgres/database.ts";
import { compileAddresses } from "./address-list.ts";
import { findKeys, type KeyRow } from "./store.ts";
import { keyPrefix, parseToken } from "./token.ts";

function toCredential(row: KeyRow): Credential {
  const { id, name, account_id, tier, overrides, scopes } = row;
  const allowsAddress = compileAddresses(row.addresses);
  return {
    principal: {
      ...{ kind: "key", keyId: id, name, accountId: account_id, tier, overrides, scopes: new Set(scopes) },
      ...(allowsAddress && { allowsAddress }),
    },
    secretHash: row.secret_hash,
    isRevoked: row.revoked_at !== null,
    expiresAt: row.expires_at,
    belongsTo: [account_id],
  };
}

/** API keys as bearers. */
export function keyBearers(db: Database): BearerKind {
  return {
    prefix: keyPrefix,
    parse: parseToken,
    async find(ids) {
      const rows = await findKeys(db, ids);
      return new Map(rows.map((row) => [row.id, toCredential(row)]));
    },
  };
}
