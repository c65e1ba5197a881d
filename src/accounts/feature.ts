import type { Feature } from "../feature.ts";
import { groundMigrations } from "./ground.ts";
import { peopleMigrations } from "./tables.ts";

/** Accounts, to whom everything belongs, and their people. Their first migration makes the first tables of all others, too. */
export const accounts: Feature<unknown> = {
  migrations: {
    ...groundMigrations,
    ...peopleMigrations,
    "023-overrides": ["alter table accounts add column overrides jsonb not null default '[]'"],
  },
};
