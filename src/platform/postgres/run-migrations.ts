import { CompiledQuery, type Kysely } from "kysely";
import type { Migration } from "kysely/migration";
import { StartRefused } from "../start-refused.ts";
import type { Migrations } from "./schema.ts";

/** Names of migrations. */
export interface MigrationResult {
  /** Migrations that this call applied. */
  readonly applied: readonly string[];
  /** Migrations of later releases that the database already had. */
  readonly newer: readonly string[];
}

/** Throws StartRefused if the database has migrations, but not the first: a release before 0.2.0 created it. */
export function refuseUnreleased(applied: ReadonlySet<string>, migrations: Migrations): void {
  const [first] = Object.keys(migrations).sort();
  if (applied.size === 0 || first === undefined || applied.has(first)) return;
  throw new StartRefused(
    "the database was created before release 0.2.0 and cannot be upgraded: start with an empty DATA_DIR or database",
  );
}

/**
 * Applies missing migrations and accepts those of later releases, which are safe for this release. Kysely holds an
 * advisory lock meanwhile, so that only one process migrates. If no migration is missing, only the names of applied
 * migrations are read, because Kysely would read the whole catalog twice.
 */
export async function runMigrations(
  db: Kysely<unknown>,
  migrations: Migrations,
  readApplied: () => Promise<ReadonlySet<string>>,
): Promise<MigrationResult> {
  const before = await readApplied();
  if (Object.keys(migrations).every((name) => before.has(name)))
    return { applied: [], newer: findNewer(before, migrations) };
  let newer: readonly string[] = [];
  /** Called with the lock held. */
  const getMigrations = async (): Promise<Record<string, Migration>> => {
    const applied = await readApplied();
    refuseUnreleased(applied, migrations);
    newer = findNewer(applied, migrations);
    // Kysely refuses a database with migrations that it does not know.
    const known = newer.map((name) => [name, asKysely([])] as const);
    return Object.fromEntries([
      ...Object.entries(migrations).map(([name, statements]) => [name, asKysely(statements)] as const),
      ...known,
    ]);
  };
  // Loaded on demand: most processes find the database migrated.
  const { Migrator } = await import("kysely/migration");
  const { error, results = [] } = await new Migrator({ db, provider: { getMigrations } }).migrateToLatest();
  if (error) throw error;
  return { applied: results.map(({ migrationName }) => migrationName), newer };
}

const findNewer = (applied: ReadonlySet<string>, migrations: Migrations): string[] =>
  [...applied].filter((name) => !(name in migrations)).sort();

function asKysely(statements: readonly string[]): Migration {
  return {
    async up(db) {
      for (const statement of statements) await db.executeQuery(CompiledQuery.raw(statement));
    },
  };
}
