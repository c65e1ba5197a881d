import type { Migrations } from "../platform/postgres/schema.ts";

/** Codes for users who have lost their app, each good once. */
interface RecoveryCodesTable {
  user_id: string;
  /** Keyed by the seed, which is sealed: a code has 50 random bits, and who reads this table alone can try none. */
  hash: Buffer;
}

declare module "../platform/postgres/schema.ts" {
  interface Schema {
    recovery_codes: RecoveryCodesTable;
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
};
