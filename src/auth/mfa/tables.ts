import type { Migrations } from "../../platform/postgres/schema.ts";

/** Recovery codes for users who have lost their app; single use. */
interface RecoveryCodesTable {
  user_id: string;
  /** HMAC with the seed as key. A code has only 50 random bits: without the key, codes could be guessed offline. */
  hash: Buffer;
}

/** Removals of lost second factors, ordered by the operator. */
interface FactorRemovalsTable {
  user_id: string;
  /** A day after the notification e-mail; null until that e-mail is written. */
  due_at: Date | null;
}

declare module "../../platform/postgres/schema.ts" {
  interface Schema {
    recovery_codes: RecoveryCodesTable;
    factor_removals: FactorRemovalsTable;
  }
}

export const mfaMigrations: Migrations = {
  "015-mfa": [
    `create table recovery_codes (
      user_id text not null references users (id) on delete cascade,
      hash bytea not null,
      primary key (user_id, hash)
    )`,
    `create table factor_removals (
      user_id text primary key references users (id) on delete cascade,
      due_at timestamptz
    )`,
  ],
};
