import type { Migration } from "kysely/migration";
import { up as ground } from "./001-ground.ts";
import { up as profiles } from "./003-profiles.ts";
import { up as pressure } from "./005-pressure.ts";

/** All migrations, in the order of their names. Each only goes forward, and is safe while the release before it runs. */
export const migrations: Readonly<Record<string, Migration>> = {
  "001-ground": { up: ground },
  "003-profiles": { up: profiles },
  "005-pressure": { up: pressure },
};
