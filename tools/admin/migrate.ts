import { migrations } from "../../src/app/migrations.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import type { AdminCommand } from "./command.ts";
import { withDatabase } from "./operator.ts";

export const migrateDatabase: AdminCommand = {
  help: `migrate

  applies the migrations of this release, before processes of the release start with MIGRATE=off`,
  options: [],
  async run(_given, env) {
    const { applied, newer } = await withDatabase(env, (db) => db.migrate(migrations));
    if (newer.length > 0)
      return `The database has migrations of a later release than ${releaseVersion} (${newer.join(", ")}): nothing to do.`;
    if (applied.length === 0) return `The database has all migrations of release ${releaseVersion}: nothing to do.`;
    return `Applied the migrations of release ${releaseVersion}: ${applied.join(", ")}.`;
  },
};
