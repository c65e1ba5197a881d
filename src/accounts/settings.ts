import { SessionLogLevel } from "../gen/pilothouse/v1/session_log_pb.ts";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";

/** Converts log levels between rows and messages; unspecified becomes undefined. */
export const { toMessage: toLogLevel, toStored: toStoredLogLevel } = storedNames(SessionLogLevel);

export type StoredLogLevel = NonNullable<ReturnType<typeof toStoredLogLevel>>;

/** Log level of accounts without a setting. */
export const defaultLogLevel: StoredLogLevel = "errors";

/** Returns the log level of the account's new sessions. */
export async function readLogLevel(db: Queryable, accountId: string): Promise<StoredLogLevel> {
  const select = db.sql.selectFrom("accounts").select("session_logs").where("id", "=", accountId);
  return (await select.executeTakeFirstOrThrow()).session_logs ?? defaultLogLevel;
}

export async function saveLogLevel(tx: Tx, accountId: string, level: StoredLogLevel): Promise<void> {
  await tx.sql.updateTable("accounts").set({ session_logs: level }).where("id", "=", accountId).execute();
}
