import type { Feature } from "../feature.ts";
import { workMigrations } from "./tables.ts";

/** Leased work, of whatever kinds other features define. */
export const work: Feature<unknown> = { migrations: workMigrations };
