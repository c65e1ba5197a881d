import { sql } from "kysely";
import { tokenText } from "../../identity/token-text.ts";
import type { BearerKind } from "../../kernel/bearer-kind.ts";
import type { FileLinkGrant } from "../../kernel/call.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import { findTokens, type SessionTokenRow, tokenCredential } from "../cdp/session-tokens.ts";

export const fileLinkText = tokenText("phl_", "fln");

/** Returns the scope of a link. The creator of the link needs the same scope. */
export const scopeOfLink = (method: FileLinkGrant["method"]): string =>
  method === "put" ? "sessions:write" : "sessions:read";

/** A link to insert. Only the hash of its secret is stored. */
export interface NewFileLink extends FileLinkGrant {
  readonly sessionId: string;
  /** The key or login that created the link. */
  readonly createdBy: string;
  readonly secretHash: Buffer;
  readonly expiresAt: Date;
}

interface FileLinkRow extends SessionTokenRow {
  readonly file_name: string;
  readonly method: FileLinkGrant["method"];
  readonly opens_until: Date;
}

const findStatement = findTokens("file-link-find", "file_links", ["file_name", "method", "opens_until"]);

export async function insertFileLink(tx: Tx, link: NewFileLink): Promise<void> {
  await tx.sql
    .insertInto("file_links")
    .values({
      id: link.id,
      session_id: link.sessionId,
      made_by: link.createdBy,
      file_name: link.name,
      method: link.method,
      secret_hash: link.secretHash,
      opens_until: link.expiresAt,
      used_at: null,
      revoked_at: null,
    })
    .execute();
}

/** Marks a link as used. Returns false if it was used before. */
export async function useFileLink(db: Database, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db.sql
    .updateTable("file_links")
    .set({ used_at: sql<Date>`app_now()` })
    .where("id", "=", id)
    .where("used_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function isUnused(db: Database, id: string): Promise<boolean> {
  const row = db.sql.selectFrom("file_links").select("id").where("id", "=", id).where("used_at", "is", null);
  return (await row.executeTakeFirst()) !== undefined;
}

/** Makes a used link usable again. */
export async function releaseFileLink(db: Database, id: string): Promise<void> {
  await db.sql.updateTable("file_links").set({ used_at: null }).where("id", "=", id).execute();
}

/** Deletes links an hour after they have expired. */
export async function sweepFileLinks(db: Database): Promise<void> {
  await db.sql.deleteFrom("file_links").where("opens_until", "<", sql<Date>`app_now() - interval '1 hour'`).execute();
}

/** Creates the bearer kind of links. A link is valid only while the key or login that created it is valid. */
export function fileLinkBearers(db: Database): BearerKind {
  return {
    prefix: fileLinkText.prefix,
    parse: fileLinkText.parse,
    async find(ids) {
      const rows = await db.named<FileLinkRow>(findStatement, [ids]);
      return new Map(
        rows.map((row) => {
          const { id, file_name: name, method, opens_until: opensUntil } = row;
          const grant = { scope: scopeOfLink(method), fileLink: { id, name, method } };
          return [id, { ...tokenCredential(row, grant), opensUntil }];
        }),
      );
    },
  };
}
