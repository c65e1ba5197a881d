import type { Feature } from "../feature.ts";
import { mailMigrations } from "./tables.ts";

/** Mails to users. */
export const mail: Feature<unknown> = { migrations: mailMigrations };
