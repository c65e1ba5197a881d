import type { ColumnType } from "kysely";

/**
 * The tables as the migrations leave them. It is empty here: each feature adds its own in its `tables.ts`, by
 * `declare module "../platform/schema.ts" { interface Schema { ... } }`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: the features fill it.
export interface Schema {}

/** A time that PostgreSQL sets by itself unless it is given. */
export type Stamp = ColumnType<Date, Date | undefined, Date>;

/** A number of 64 bits: pg reads it as text. */
export type BigInteger = ColumnType<string, bigint | number | string, bigint | number | string>;

/**
 * The statements of each migration, by its name. Those of all features run in the order of their names, so the number of a
 * new one is above every other's. A migration only goes forward, and is safe while the release before it runs.
 */
export type Migrations = Readonly<Record<string, readonly string[]>>;
