import { tokenText } from "../../identity/token-text.ts";
import type { BearerKind } from "../../kernel/bearer-kind.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import { findTokens, type SessionTokenRow, tokenCredential } from "./session-tokens.ts";

/** Scope needed to connect; the only scope of a token. */
export const cdpScope = "sessions:write";

export const cdpTokenText = tokenText("phc_", "cdp");

/** A token to insert. Only the hash of its secret is stored. */
export interface NewCdpToken {
  readonly id: string;
  readonly sessionId: string;
  /** The key or login that created the token. */
  readonly createdBy: string;
  readonly secretHash: Buffer;
  /** Time until which the token accepts new connections. */
  readonly opensUntil: Date;
}

interface CdpTokenRow extends SessionTokenRow {
  readonly opens_until: Date;
}

const findStatement = findTokens("cdp-token-find", "cdp_tokens", ["opens_until"]);

export async function insertCdpToken(tx: Tx, token: NewCdpToken): Promise<void> {
  await tx.sql
    .insertInto("cdp_tokens")
    .values({
      id: token.id,
      session_id: token.sessionId,
      made_by: token.createdBy,
      secret_hash: token.secretHash,
      opens_until: token.opensUntil,
      revoked_at: null,
    })
    .execute();
}

export async function revokeCdpTokens(tx: Tx, sessionId: string, now: Date): Promise<void> {
  await tx.sql
    .updateTable("cdp_tokens")
    .set({ revoked_at: now })
    .where("session_id", "=", sessionId)
    .where("revoked_at", "is", null)
    .execute();
}

/** Deletes the tokens of ended sessions. */
export async function sweepCdpTokens(db: Database): Promise<void> {
  await db.sql
    .deleteFrom("cdp_tokens")
    .using("sessions")
    .whereRef("sessions.id", "=", "cdp_tokens.session_id")
    .where("sessions.status", "in", ["destroyed", "errored"])
    .execute();
}

/** Creates the bearer kind of CDP tokens. A token is valid only while the key or login that created it is valid. */
export function cdpTokenBearers(db: Database): BearerKind {
  return {
    prefix: cdpTokenText.prefix,
    parse: cdpTokenText.parse,
    async find(ids) {
      const rows = await db.named<CdpTokenRow>(findStatement, [ids]);
      return new Map(
        rows.map((row) => [row.id, { ...tokenCredential(row, { scope: cdpScope }), opensUntil: row.opens_until }]),
      );
    },
  };
}
