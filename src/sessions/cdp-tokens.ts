import type { Override } from "../accounts/entitlement.ts";
import type { Role } from "../accounts/tables.ts";
import { compileAddresses } from "../api-keys/address-list.ts";
import type { Principal } from "../call.ts";
import type { BearerKind, Credential } from "../identity/bearer-kind.ts";
import { tokenText } from "../identity/token-text.ts";
import type { Database, NamedStatement, Tx } from "../platform/postgres/database.ts";

/** The scope that connecting needs; a token has no other. */
const scope = "sessions:write";

/** How tokens for the CDP connections of a session are written. */
export const cdpTokenText = tokenText("phc_", "cdp");

/** A token as it is kept: of its secret only the hash. */
export interface NewCdpToken {
  readonly id: string;
  readonly sessionId: string;
  /** The key or the login that has made it. */
  readonly madeBy: string;
  readonly secretHash: Buffer;
  /** Until when one can connect by it. */
  readonly opensUntil: Date;
}

/** A token with what its maker and its account add. */
interface TokenRow {
  readonly id: string;
  readonly session_id: string;
  readonly secret_hash: Buffer;
  readonly opens_until: Date;
  /** It was revoked itself, or its maker is no longer good. */
  readonly is_ended: boolean;
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

const findStatement: NamedStatement = {
  name: "cdp-token-find",
  text: `select t.id, t.session_id, t.secret_hash, t.opens_until, t.made_by,
      t.revoked_at is not null or k.revoked_at is not null or l.ended_at is not null or a.disabled_at is not null
        or (u.id is not null and m.id is null) as is_ended,
      coalesce(k.name, u.email) as name, coalesce(k.expires_at, l.ends_at) as ends_at, k.scopes, k.addresses,
      u.id as user_id, m.role, a.id as account_id, a.tier, a.overrides
    from cdp_tokens t
      join sessions s on s.id = t.session_id
      join accounts a on a.id = s.account_id
      left join api_keys k on k.id = t.made_by
      left join logins l on l.id = t.made_by
      left join users u on u.id = coalesce(k.created_by, l.user_id)
      left join memberships m on m.account_id = a.id and m.user_id = u.id
    where t.id = any($1::text[]) and coalesce(k.id, l.id) is not null`,
};

/** Keeps a token. */
export async function insertCdpToken(tx: Tx, token: NewCdpToken): Promise<void> {
  await tx.sql
    .insertInto("cdp_tokens")
    .values({
      id: token.id,
      session_id: token.sessionId,
      made_by: token.madeBy,
      secret_hash: token.secretHash,
      opens_until: token.opensUntil,
      revoked_at: null,
    })
    .execute();
}

/** Revokes all tokens of a session. */
export async function revokeCdpTokens(tx: Tx, sessionId: string, now: Date): Promise<void> {
  await tx.sql
    .updateTable("cdp_tokens")
    .set({ revoked_at: now })
    .where("session_id", "=", sessionId)
    .where("revoked_at", "is", null)
    .execute();
}

/** Deletes the tokens of sessions that have ended. */
export async function sweepCdpTokens(db: Database): Promise<void> {
  await db.sql
    .deleteFrom("cdp_tokens")
    .using("sessions")
    .whereRef("sessions.id", "=", "cdp_tokens.session_id")
    .where("sessions.status", "in", ["destroyed", "errored"])
    .execute();
}

function toPrincipal(row: TokenRow): Principal {
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

function toCredential(row: TokenRow): Credential {
  const { made_by: madeBy, account_id: accountId, session_id: sessionId, user_id: userId } = row;
  return {
    principal: toPrincipal(row),
    secretHash: row.secret_hash,
    isRevoked: row.is_ended,
    expiresAt: row.ends_at,
    opensUntil: row.opens_until,
    belongsTo: [accountId, madeBy, sessionId, ...(userId === null ? [] : [userId])],
  };
}

/** Tokens for CDP connections as bearers. They end with the key or the login that has made them. */
export function cdpTokenBearers(db: Database): BearerKind {
  return {
    prefix: cdpTokenText.prefix,
    parse: cdpTokenText.parse,
    async find(ids) {
      const rows = await db.named<TokenRow>(findStatement, [ids]);
      return new Map(rows.map((row) => [row.id, toCredential(row)]));
    },
  };
}
