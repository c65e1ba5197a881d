import type { Migrations, Stamp } from "../../platform/postgres/schema.ts";

/** Recipes. Rows are never updated. */
interface RecipesTable {
  id: string;
  account_id: string;
  name: string;
  description: string | null;
  step_count: number;
  /** The complete creation request, in protobuf encoding. */
  contents: Buffer;
  created_at: Stamp;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    recipes: RecipesTable;
  }
}

export const recipeMigrations: Migrations = {
  "027-recipes": [
    `create table recipes (
      id text primary key,
      account_id text not null references accounts (id),
      name text not null,
      description text,
      step_count integer not null,
      contents bytea not null,
      created_at timestamptz not null default app_now()
    )`,
    "create index recipes_account on recipes (account_id, id desc)",
  ],
};
