import type { Migrations } from "../../platform/postgres/schema.ts";

/** Codes for users who have lost their app, each good once. */
interface RecoveryCodesTable {
  user_id: string;
  /** Keyed by the seed, which is sealed: a code has 50 random bits, and who reads this table alone can try none. */
  hash: Buffer;
}

/** Second factors that the operator removes, of users who have lost them. */
interface FactorRemovalsTable {
  user_id: string;
  /** A day after the mail that tells of it; null until that is written. */
  due_at: Date | null;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    recovery_codes: RecoveryCodesTable;
    factor_removals: FactorRemovalsTable;
  }
}

export const mfaMigrations: Migrations = {
  "033-recovery-codes": [
    `create table recovery_codes (
    user_id text not null references users (id) on delete cascade,
    hash bytea not null,
    primary key (user_id, hash)
  )`,
  ],
  "040-factor-removals": [
    `create table factor_removals (
    user_id text primary key references users (id) on delete cascade,
    due_at timestamptz
  )`,
  ],
};
