import { sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";

/** A mail as it is kept. */
export interface NewMail {
  readonly id: string;
  readonly userId: string | undefined;
  readonly kind: string;
  /** Sealed. */
  readonly content: Buffer;
}

/** Adds a mail, at the latest with the commit. */
export function insertMail(tx: Tx, { id, userId, kind, content }: NewMail): void {
  tx.send(tx.sql.insertInto("mails").values({ id, user_id: userId ?? null, kind, content }));
}

/** Says that a mail was sent. */
export async function markSent(db: Queryable, id: string): Promise<void> {
  await db.sql.updateTable("mails").set({ sent_at: sql<Date>`clock_timestamp()` }).where("id", "=", id).execute();
}
