import { tokenText } from "../../identity/token-text.ts";
import type { BearerKind } from "../../kernel/bearer-kind.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import { findTokens, type SessionTokenRow, tokenCredential } from "./session-tokens.ts";

/** The scope that connecting needs; a token has no other. */
export const cdpScope = "sessions:write";

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

interface CdpTokenRow extends SessionTokenRow {
  readonly opens_until: Date;
}

const findStatement = findTokens("cdp-token-find", "cdp_tokens", ["opens_until"]);

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

/** Tokens for CDP connections as bearers. They end with the key or the login that has made them. */
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
