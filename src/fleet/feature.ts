import type { Feature } from "../feature.ts";
import { fleetMigrations } from "./tables.ts";

export const fleet: Feature<unknown> = { migrations: fleetMigrations };
