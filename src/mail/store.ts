import type { Queryable, Tx } from "../platform/postgres/database.ts";

/** A mail to keep until it is sent. */
export interface NewMail {
  readonly id: string;
  readonly userId: string | undefined;
  readonly kind: string;
  /** Sealed. */
  readonly content: Buffer;
}

/** A mail as it is kept. */
export interface StoredMail {
  readonly id: string;
  readonly content: Buffer;
  readonly created_at: Date;
}

/** Adds a mail, at the latest with the commit. */
export function insertMail(tx: Tx, { id, userId, kind, content }: NewMail): void {
  tx.send(tx.sql.insertInto("mails").values({ id, user_id: userId ?? null, kind, content }));
}

/** Finds a mail. */
export function findMail(db: Queryable, id: string): Promise<StoredMail | undefined> {
  return db.sql.selectFrom("mails").select(["id", "content", "created_at"]).where("id", "=", id).executeTakeFirst();
}

/** Reads the latest mails, those first. */
export function readLatestMails(db: Queryable, limit: number): Promise<StoredMail[]> {
  const mails = db.sql.selectFrom("mails").select(["id", "content", "created_at"]);
  return mails.orderBy("created_at", "desc").orderBy("id", "desc").limit(limit).execute();
}

/** Deletes a mail. */
export async function deleteMail(db: Queryable, id: string): Promise<void> {
  await db.sql.deleteFrom("mails").where("id", "=", id).execute();
}

/** Deletes mails that are older than that: those that could not be sent, and those of an outbox. */
export async function deleteOldMails(db: Queryable, before: Date): Promise<void> {
  await db.sql.deleteFrom("mails").where("created_at", "<", before).execute();
}
