import type { BearerKind, Credential } from "../../kernel/bearer-kind.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { compileAddresses } from "./address-list.ts";
import { scopesOfRole } from "./scopes.ts";
import { findKeys, type KeyRow } from "./store.ts";
import { keyPrefix, parseToken } from "./token.ts";

function toCredential(row: KeyRow): Credential {
  const { id, name, account_id: accountId, tier, overrides, created_by: userId, role } = row;
  const scopes = role ? row.scopes.filter((scope) => scopesOfRole(role).has(scope)) : row.scopes;
  const allowsAddress = compileAddresses(row.addresses);
  return {
    principal: {
      kind: "key",
      keyId: id,
      name,
      accountId,
      tier,
      overrides,
      scopes: new Set(scopes),
      ...(userId !== null && { userId }),
      ...(role && { role }),
      ...(allowsAddress && { allowsAddress }),
    },
    secretHash: row.secret_hash,
    isRevoked: row.revoked_at !== null || row.is_orphaned,
    expiresAt: row.expires_at,
    belongsTo: userId === null ? [accountId] : [accountId, userId],
  };
}

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
