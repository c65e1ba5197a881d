import type { Selectable } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { Schema } from "../platform/postgres/schema.ts";

/** E-mails that users can opt out of. */
export type OptionalMailKind = "product_updates" | "usage_alerts" | "webhook_failures" | "team_activity";

export type MailPreferences = Readonly<Record<OptionalMailKind, boolean>>;

const defaults: MailPreferences = {
  product_updates: false,
  usage_alerts: true,
  webhook_failures: true,
  team_activity: true,
};

/** Returns whether users can opt out of a kind of e-mail. */
export function isOptional(kind: string): kind is OptionalMailKind {
  return Object.hasOwn(defaults, kind);
}

/** Preferences of a user, and when the user last changed any. */
export type StoredPreferences = MailPreferences & { readonly updated_at?: Date };

/** Reads the preferences of a user, or the defaults. */
export async function readPreferences(db: Queryable, userId: string): Promise<StoredPreferences> {
  const row: Selectable<Schema["mail_preferences"]> | undefined = await db.sql
    .selectFrom("mail_preferences")
    .selectAll()
    .where("user_id", "=", userId)
    .executeTakeFirst();
  return row ?? defaults;
}

export async function savePreferences(tx: Tx, userId: string, preferences: MailPreferences, at: Date): Promise<void> {
  const row = { ...preferences, updated_at: at };
  await tx.sql
    .insertInto("mail_preferences")
    .values({ ...row, user_id: userId })
    .onConflict((conflict) => conflict.column("user_id").doUpdateSet(row))
    .execute();
}
