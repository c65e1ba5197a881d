import type { Tx } from "../platform/database.ts";
import type { Id } from "../platform/ids.ts";

/** Finds the developer account of embedded mode, or makes it with the given identifier. */
export async function ensureDeveloperAccount(tx: Tx, id: Id<"account">): Promise<string> {
  await tx.sql
    .insertInto("accounts")
    .values({ id, name: "Developer", tier: "enterprise", developer: true })
    .onConflict((conflict) => conflict.column("developer").where("developer", "=", true).doNothing())
    .execute();
  const row = await tx.sql.selectFrom("accounts").select("id").where("developer", "=", true).executeTakeFirstOrThrow();
  return row.id;
}

/** Makes an account. */
export async function insertAccount(tx: Tx, account: { id: Id<"account">; name: string; tier: string }): Promise<void> {
  await tx.sql.insertInto("accounts").values(account).execute();
}
