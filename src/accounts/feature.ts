import type { Feature } from "../feature.ts";
import { groundMigrations } from "./ground.ts";

/** Accounts, to whom everything belongs: their migration makes the first tables of all others, too. */
export const accounts: Feature<unknown> = {
  migrations: {
    ...groundMigrations,
    "023-overrides": ["alter table accounts add column overrides jsonb not null default '[]'"],
  },
};
