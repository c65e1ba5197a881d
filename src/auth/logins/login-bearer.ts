import { scopesOfRole } from "../../identity/api-keys/scopes.ts";
import type { BearerKind, Credential } from "../../kernel/bearer-kind.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { accessPrefix, parseAccessToken } from "./login-tokens.ts";
import { type AccessRow, findAccess } from "./store.ts";

function toCredential(row: AccessRow): Credential {
  // The role of a former member is irrelevant, because the bearer is revoked.
  const role = row.role ?? "member";
  return {
    principal: {
      kind: "login",
      loginId: row.login_id,
      tokenId: row.id,
      userId: row.user_id,
      name: row.email,
      accountId: row.account_id,
      tier: row.tier,
      overrides: row.overrides,
      role,
      scopes: scopesOfRole(role),
      hasSecondFactor: row.has_second_factor,
      steppedUpAt: row.stepped_up_at?.getTime(),
    },
    secretHash: row.access_hash,
    isRevoked: row.is_ended,
    expiresAt: row.access_expires_at,
    belongsTo: [row.account_id, row.user_id, row.login_id],
  };
}

/** Creates the bearer kind of access tokens. */
export function loginBearers(db: Database): BearerKind {
  return {
    prefix: accessPrefix,
    parse: parseAccessToken,
    async find(ids) {
      const rows = await findAccess(db, ids);
      return new Map(rows.map((row) => [row.id, toCredential(row)]));
    },
  };
}
