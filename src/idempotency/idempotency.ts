import { sql } from "kysely";
import "./tables.ts";
import type { Database } from "../platform/database.ts";
import { isErrorSlug } from "../platform/error-table.ts";
import { type Extensions, type Failure, type FieldFault, restoreFailure } from "../platform/errors.ts";

/** What came of a request with an Idempotency-Key that was used before. */
export type KeptOutcome =
  | { readonly failure: Failure; readonly answer?: undefined }
  | { readonly failure?: undefined; readonly answer: Uint8Array };

/** Answers of requests with an Idempotency-Key, kept for 24 hours per account. */
export interface Idempotency {
  /** Claims a key: "new" when the request may run, "running" and "other" when another has the key, else what it came to. */
  begin(accountId: string, key: string, requestHash: Buffer): Promise<"new" | "running" | "other" | KeptOutcome>;
  keepAnswer(accountId: string, key: string, answer: Uint8Array): Promise<void>;
  keepFailure(accountId: string, key: string, failure: Failure): Promise<void>;
  /** Gives a key back, so that the request can be sent again. */
  forget(accountId: string, key: string): Promise<void>;
  /** Deletes what has been kept for 24 hours. */
  sweep(): Promise<void>;
}

/** A claim without an outcome that is older than this is of a gateway that was killed; no request takes so long. */
const abandonedAfter = sql`interval '5 minutes'`;
const keptFor = sql`interval '24 hours'`;

/** A failure as it is kept. */
interface StoredFailure {
  readonly slug: string;
  readonly detail?: string;
  readonly extensions: Extensions;
  readonly errors: readonly FieldFault[];
}

function toStored({ slug, detail, extensions, errors }: Failure): StoredFailure {
  return { slug, extensions, errors, ...(detail !== undefined && { detail }) };
}

function toFailure(json: string): Failure {
  const { slug, detail, extensions, errors }: StoredFailure = JSON.parse(json);
  return restoreFailure(isErrorSlug(slug) ? slug : "internal", extensions, {
    errors,
    ...(detail !== undefined && { detail }),
  });
}

/** Makes the store. */
export function createIdempotency(db: Database): Idempotency {
  /** Inserts the claim, or takes over one that is out of date or was abandoned. */
  async function claim(accountId: string, key: string, requestHash: Buffer): Promise<boolean> {
    const fresh = { request_hash: requestHash, answer: null, failure: null, created_at: sql<Date>`now()` };
    const row = await db.sql
      .insertInto("idempotency_keys")
      .values({ account_id: accountId, key, ...fresh })
      .onConflict((conflict) =>
        conflict
          .columns(["account_id", "key"])
          .doUpdateSet(fresh)
          .where(
            sql<boolean>`idempotency_keys.created_at < now() - ${keptFor}
              or (idempotency_keys.answer is null and idempotency_keys.failure is null
                and idempotency_keys.created_at < now() - ${abandonedAfter})`,
          ),
      )
      .returning("key")
      .executeTakeFirst();
    return row !== undefined;
  }

  async function keep(
    accountId: string,
    key: string,
    outcome: { answer: Buffer } | { failure: string },
  ): Promise<void> {
    const update = db.sql.updateTable("idempotency_keys").set(outcome);
    await update.where("account_id", "=", accountId).where("key", "=", key).execute();
  }

  return {
    async begin(accountId, key, requestHash) {
      if (await claim(accountId, key, requestHash)) return "new";
      const row = await db.sql
        .selectFrom("idempotency_keys")
        .select(["request_hash", "answer", "failure"])
        .where("account_id", "=", accountId)
        .where("key", "=", key)
        .executeTakeFirst();
      // Given back between the two statements: the request that had it is to be sent again, and so is this one.
      if (!row) return "running";
      if (!row.request_hash.equals(requestHash)) return "other";
      if (row.failure) return { failure: toFailure(row.failure) };
      return row.answer ? { answer: row.answer } : "running";
    },
    keepAnswer: (accountId, key, answer) => keep(accountId, key, { answer: Buffer.from(answer) }),
    keepFailure: (accountId, key, failure) => keep(accountId, key, { failure: JSON.stringify(toStored(failure)) }),
    async forget(accountId, key) {
      const row = db.sql.deleteFrom("idempotency_keys").where("account_id", "=", accountId).where("key", "=", key);
      await row.execute();
    },
    async sweep() {
      await db.sql.deleteFrom("idempotency_keys").where("created_at", "<", sql<Date>`now() - ${keptFor}`).execute();
    },
  };
}
