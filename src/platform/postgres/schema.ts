import type { ColumnType } from "kysely";

/**
 * Tables after all migrations. Each feature adds its own tables in `tables.ts` by `declare module
 * "../platform/postgres/schema.ts" { interface Schema { ... } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the features fill it.
export interface Schema {}

/** Timestamp with a default set by PostgreSQL. */
export type Stamp = ColumnType<Date, Date | undefined, Date>;

/** 64-bit integer, which pg reads as text. */
export type BigInteger = ColumnType<string, bigint | number | string, bigint | number | string>;

/**
 * Statements of migrations by name. Migrations of all features run in the order of their names, so a new migration
 * needs the highest number. Migrations are forward-only and safe while the previous release runs, see CONTRIBUTING.md.
 */
export type Migrations = Readonly<Record<string, readonly string[]>>;
