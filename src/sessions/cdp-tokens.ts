import type { Override } from "../accounts/entitlement.ts";
import { compileAddresses } from "../api-keys/address-list.ts";
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
  /** The key that has made it. */
  readonly madeBy: string;
  readonly secretHash: Buffer;
  /** Until when one can connect by it. */
  readonly opensUntil: Date;
}

/** A token with what its key and its account add. */
interface TokenRow {
  readonly id: string;
  readonly session_id: string;
  readonly secret_hash: Buffer;
  readonly opens_until: Date;
  readonly is_revoked: boolean;
  readonly key_id: string;
  readonly key_name: string;
  readonly key_expires_at: Date | null;
  readonly account_id: string;
  readonly tier: string;
  readonly overrides: Override[];
  readonly scopes: string[];
  readonly addresses: string[];
}

// One made by a login is not found until logins are bearers: then its row is joined here, as that of a key is.
const findStatement: NamedStatement = {
  name: "cdp-token-find",
  text: `select t.id, t.session_id, t.secret_hash, t.opens_until,
      t.revoked_at is not null or k.revoked_at is not null as is_revoked,
      k.id as key_id, k.name as key_name, k.expires_at as key_expires_at, k.scopes, k.addresses,
      a.id as account_id, a.tier, a.overrides
    from cdp_tokens t join api_keys k on k.id = t.made_by join accounts a on a.id = k.account_id
    where t.id = any($1::text[])`,
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

function toCredential(row: TokenRow): Credential {
  const { key_id: keyId, key_name: name, account_id: accountId, session_id: sessionId, tier, overrides } = row;
  const scopes = new Set(row.scopes.filter((each) => each === scope));
  const allowsAddress = compileAddresses(row.addresses);
  return {
    principal: { kind: "key", keyId, name, accountId, tier, overrides, scopes, sessionId, allowsAddress },
    secretHash: row.secret_hash,
    isRevoked: row.is_revoked,
    expiresAt: row.key_expires_at,
    opensUntil: row.opens_until,
    belongsTo: [accountId, keyId, sessionId],
  };
}

/** Tokens for CDP connections as bearers. They end with the key that has made them. */
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
