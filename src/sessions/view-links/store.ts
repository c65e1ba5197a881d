import type { Insertable, Selectable } from "kysely";
import type { Database, Tx } from "../../platform/postgres/database.ts";
import type { Schema } from "../../platform/postgres/schema.ts";

export type ViewLinkRow = Selectable<Schema["view_links"]>;

/** A link to insert. Only the hash of its secret is stored. */
export type NewViewLink = Omit<Insertable<Schema["view_links"]>, "created_at" | "revoked_at">;

export interface ViewLinksQuery {
  readonly sessionId: string;
  readonly now: Date;
  readonly limit: number;
  /** Identifier of a link. Only older links are returned. */
  readonly before: string | undefined;
}

export async function insertViewLink(tx: Tx, link: NewViewLink): Promise<ViewLinkRow> {
  return tx.sql
    .insertInto("view_links")
    .values({ ...link, revoked_at: null })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Lists the links of a session that are neither revoked nor expired, newest first. */
export async function listViewLinks(
  db: Database,
  { sessionId, now, limit, before }: ViewLinksQuery,
): Promise<ViewLinkRow[]> {
  return db.sql
    .selectFrom("view_links")
    .selectAll()
    .where("session_id", "=", sessionId)
    .where("revoked_at", "is", null)
    .where("expires_at", ">", now)
    .$if(before !== undefined, (query) => query.where("id", "<", before ?? ""))
    .orderBy("id", "desc")
    .limit(limit)
    .execute();
}

/** Revokes a link. Returns false if the session has no such link, or the link was already revoked. */
export async function revokeViewLink(tx: Tx, link: { id: string; sessionId: string; now: Date }): Promise<boolean> {
  const { numUpdatedRows } = await tx.sql
    .updateTable("view_links")
    .set({ revoked_at: link.now })
    .where("id", "=", link.id)
    .where("session_id", "=", link.sessionId)
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Assigns a single-viewer link to the first viewer before `opens_until`. Returns whether this viewer is admitted: the
 * first viewer, or a viewer with the same secret.
 */
export async function admitViewer(
  db: Database,
  { id, viewerHash, now }: { readonly id: string; readonly viewerHash: Buffer; readonly now: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db.sql
    .updateTable("view_links")
    .set({ viewer_hash: viewerHash, opens_until: null })
    .where("id", "=", id)
    .where((is) =>
      is.or([is("viewer_hash", "=", viewerHash), is.and([is("viewer_hash", "is", null), is("opens_until", ">", now)])]),
    )
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes the links of ended sessions. */
export async function sweepViewLinks(db: Database): Promise<void> {
  await db.sql
    .deleteFrom("view_links")
    .using("sessions")
    .whereRef("sessions.id", "=", "view_links.session_id")
    .where("sessions.status", "in", ["destroyed", "errored"])
    .execute();
}
