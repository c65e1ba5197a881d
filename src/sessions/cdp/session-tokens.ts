import { compileAddresses } from "../../identity/api-keys/address-list.ts";
import type { Credential } from "../../kernel/bearer-kind.ts";
import type { Principal } from "../../kernel/call.ts";
import type { Override } from "../../kernel/entitlement.ts";
import type { Role } from "../../kernel/role.ts";
import type { NamedStatement } from "../../platform/postgres/database.ts";

/** A token for one session as it is kept, with what its maker and its account add. */
export interface SessionTokenRow {
  readonly id: string;
  readonly session_id: string;
  readonly secret_hash: Buffer;
  /** It was revoked itself, or its maker is no longer good. */
  readonly is_ended: boolean;
  /** The key or the login that has made it. */
  readonly made_by: string;
  readonly name: string;
  readonly ends_at: Date | null;
  /** The user who has logged in, or made the key. */
  readonly user_id: string | null;
  /** What that user is in the account. */
  readonly role: Role | null;
  /** Of a key; null of a login, whose user may use sessions whatever its role. */
  readonly scopes: string[] | null;
  readonly addresses: string[] | null;
  readonly account_id: string;
  readonly tier: string;
  readonly overrides: Override[];
}

/** Writes the statement that finds tokens in their table by identifier, with columns of their own. */
export function findTokens(name: string, table: string, own: readonly string[]): NamedStatement {
  return {
    name,
    text: `select t.id, t.session_id, t.secret_hash, t.made_by, ${own.map((column) => `t.${column}`).join(", ")},
      t.revoked_at is not null or k.revoked_at is not null or l.ended_at is not null or a.disabled_at is not null
        or (u.id is not null and m.id is null) as is_ended,
      coalesce(k.name, u.email) as name, coalesce(k.expires_at, l.ends_at) as ends_at, k.scopes, k.addresses,
      u.id as user_id, m.role, a.id as account_id, a.tier, a.overrides
    from ${table} t
      join sessions s on s.id = t.session_id
      join accounts a on a.id = s.account_id
      left join api_keys k on k.id = t.made_by
      left join logins l on l.id = t.made_by
      left join users u on u.id = coalesce(k.created_by, l.user_id)
      left join memberships m on m.account_id = a.id and m.user_id = u.id
    where t.id = any($1::text[]) and coalesce(k.id, l.id) is not null`,
  };
}

/** What a token gives: of the scope that it is for, as much as its maker has, in its session alone. */
export function tokenCredential(
  row: SessionTokenRow,
  { scope, ...grant }: { readonly scope: string } & Partial<Pick<Principal, "name" | "mayControl" | "person">>,
): Credential {
  const { made_by: madeBy, account_id: accountId, session_id: sessionId, user_id: userId } = row;
  return {
    principal: { ...toPrincipal(row, scope), ...grant },
    secretHash: row.secret_hash,
    isRevoked: row.is_ended,
    expiresAt: row.ends_at,
    belongsTo: [accountId, madeBy, sessionId, ...(userId === null ? [] : [userId])],
  };
}

function toPrincipal(row: SessionTokenRow, scope: string): Principal {
  const { made_by: madeBy, session_id: sessionId, scopes: ofKey, addresses, user_id: userId, role } = row;
  const scopes = new Set([scope].filter((each) => ofKey?.includes(each) ?? true));
  const caller = {
    name: row.name,
    accountId: row.account_id,
    tier: row.tier,
    overrides: row.overrides,
    scopes,
    sessionId,
  };
  if (addresses) return { kind: "key", keyId: madeBy, ...caller, allowsAddress: compileAddresses(addresses) };
  return {
    ...{ kind: "login", loginId: madeBy, tokenId: row.id, userId: userId ?? "", role: role ?? "member", ...caller },
    ...{ hasSecondFactor: false, steppedUpAt: undefined },
  };
}
