import { type Insertable, type Selectable, sql } from "kysely";
import type { Queryable, Tx } from "../../platform/postgres/database.ts";
import type { Schema } from "../../platform/postgres/schema.ts";

type RecipesTable = Schema["recipes"];

export type RecipeRow = Selectable<RecipesTable>;

/** A recipe without its contents. */
export type ListedRecipe = Omit<RecipeRow, "contents">;

export async function countRecipes(db: Queryable, accountId: string): Promise<number> {
  const count = sql<number>`count(*)::int`.as("count");
  const counted = db.sql.selectFrom("recipes").select(count).where("account_id", "=", accountId);
  return (await counted.executeTakeFirstOrThrow()).count;
}

export async function insertRecipe(tx: Tx, recipe: Insertable<RecipesTable>): Promise<RecipeRow> {
  return tx.sql.insertInto("recipes").values(recipe).returningAll().executeTakeFirstOrThrow();
}

export async function findRecipe(db: Queryable, id: string, accountId: string): Promise<RecipeRow | undefined> {
  const found = db.sql.selectFrom("recipes").selectAll().where("id", "=", id).where("account_id", "=", accountId);
  return found.executeTakeFirst();
}

/** Lists recipes, newest first, optionally only those older than `before`. */
export async function listRecipes(
  db: Queryable,
  page: { readonly accountId: string; readonly before: string | undefined; readonly limit: number },
): Promise<ListedRecipe[]> {
  const { accountId, before, limit } = page;
  const columns = ["id", "account_id", "name", "description", "step_count", "created_at"] as const;
  let rows = db.sql.selectFrom("recipes").select(columns).where("account_id", "=", accountId);
  if (before !== undefined) rows = rows.where("id", "<", before);
  return rows.orderBy("id", "desc").limit(limit).execute();
}

/** Deletes a recipe of an account. Returns its name, or undefined if the account has no such recipe. */
export async function deleteRecipe(tx: Tx, id: string, accountId: string): Promise<{ name: string } | undefined> {
  const gone = tx.sql.deleteFrom("recipes").where("id", "=", id).where("account_id", "=", accountId);
  return gone.returning("name").executeTakeFirst();
}
