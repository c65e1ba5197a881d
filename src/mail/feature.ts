import type { Feature } from "../feature.ts";
import type { Mailer } from "./mailer.ts";
import { mailMigrations } from "./tables.ts";

/** Mails to users. */
export const mail: Feature<{ readonly mailer: Mailer }> = {
  migrations: mailMigrations,
  create: ({ mailer: { works, jobs } }) => ({ works, jobs }),
};
