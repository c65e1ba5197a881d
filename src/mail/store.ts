import type { Queryable, Tx } from "../platform/postgres/database.ts";

export interface NewMail {
  readonly id: string;
  readonly userId: string | undefined;
  readonly kind: string;
  /** Encrypted. */
  readonly content: Buffer;
}

export interface StoredMail {
  readonly id: string;
  readonly content: Buffer;
  readonly created_at: Date;
}

/** Inserts an e-mail, in a statement sent before the commit. */
export function insertMail(tx: Tx, { id, userId, kind, content }: NewMail): void {
  tx.send(tx.sql.insertInto("mails").values({ id, user_id: userId ?? null, kind, content }));
}

export function findMail(db: Queryable, id: string): Promise<StoredMail | undefined> {
  return db.sql.selectFrom("mails").select(["id", "content", "created_at"]).where("id", "=", id).executeTakeFirst();
}

/** Lists the latest e-mails, newest first. */
export function readLatestMails(db: Queryable, limit: number): Promise<StoredMail[]> {
  const mails = db.sql.selectFrom("mails").select(["id", "content", "created_at"]);
  return mails.orderBy("created_at", "desc").orderBy("id", "desc").limit(limit).execute();
}

export async function deleteMail(db: Queryable, id: string): Promise<void> {
  await db.sql.deleteFrom("mails").where("id", "=", id).execute();
}

/** Deletes e-mails created before a time: those that could not be sent, and those of an outbox. */
export async function deleteOldMails(db: Queryable, before: Date): Promise<void> {
  await db.sql.deleteFrom("mails").where("created_at", "<", before).execute();
}
