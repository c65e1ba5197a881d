import type { Stamp } from "../platform/schema.ts";

/** Answers that a repeated Idempotency-Key gets again. */
export interface IdempotencyKeysTable {
  account_id: string;
  key: string;
  /** SHA-256 of method, path and body. */
  request_hash: Buffer;
  /** The answer's message in binary; with `failure`, null while the first request runs. */
  answer: Buffer | null;
  /** JSON of a failure that is kept. */
  failure: string | null;
  created_at: Stamp;
}

declare module "../platform/schema.ts" {
  interface Schema {
    idempotency_keys: IdempotencyKeysTable;
  }
}
