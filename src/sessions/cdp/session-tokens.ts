import { compileAddresses } from "../../identity/api-keys/address-list.ts";
import type { Credential } from "../../kernel/bearer-kind.ts";
import type { Principal } from "../../kernel/call.ts";
import type { Override } from "../../kernel/entitlement.ts";
import type { Role } from "../../kernel/role.ts";
import type { NamedStatement } from "../../platform/postgres/database.ts";

/** A token for one session, with the data of its creator and account. */
export interface SessionTokenRow {
  readonly id: string;
  readonly session_id: string;
  readonly secret_hash: Buffer;
  /**
   * Whether the token or its key was revoked, its login has ended, the account is disabled, or the user is no longer a
   * member of the account.
   */
  readonly is_ended: boolean;
  /** The key or login that created the token. */
  readonly made_by: string;
  readonly name: string;
  readonly ends_at: Date | null;
  /** The user of the login, or the creator of the key. */
  readonly user_id: string | null;
  /** Current role of that user in the account. */
  readonly role: Role | null;
  /** Scopes of the key; null for a login, because every role may use sessions. */
  readonly scopes: string[] | null;
  readonly addresses: string[] | null;
  readonly account_id: string;
  readonly tier: string;
  readonly overrides: Override[];
}

/** Builds the statement that finds tokens of a table by identifier. `own` are further columns of that table. */
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

/** Creates the credential of a token: limited to one session, to `scope`, and to the rights of its creator. */
export function tokenCredential(
  row: SessionTokenRow,
  {
    scope,
    ...grant
  }: { readonly scope: string } & Partial<Pick<Principal, "name" | "mayControl" | "person" | "fileLink">>,
): Credential {
  const { made_by: createdBy, account_id: accountId, session_id: sessionId, user_id: userId } = row;
  return {
    principal: { ...toPrincipal(row, scope), ...grant },
    secretHash: row.secret_hash,
    isRevoked: row.is_ended,
    expiresAt: row.ends_at,
    belongsTo: [accountId, createdBy, sessionId, ...(userId === null ? [] : [userId])],
  };
}

function toPrincipal(row: SessionTokenRow, scope: string): Principal {
  const { made_by: createdBy, session_id: sessionId, scopes: ofKey, addresses, user_id: userId, role } = row;
  const scopes = new Set([scope].filter((each) => ofKey?.includes(each) ?? true));
  const caller = {
    name: row.name,
    accountId: row.account_id,
    tier: row.tier,
    overrides: row.overrides,
    scopes,
    sessionId,
  };
  if (addresses) return { kind: "key", keyId: createdBy, ...caller, allowsAddress: compileAddresses(addresses) };
  return {
    kind: "login",
    loginId: createdBy,
    tokenId: row.id,
    userId: userId ?? "",
    role: role ?? "member",
    ...caller,
    hasSecondFactor: false,
    steppedUpAt: undefined,
  };
}
