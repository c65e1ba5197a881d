import { sql } from "kysely";
import type { Database, Tx } from "../../platform/postgres/database.ts";

/** A request with an Idempotency-Key. */
export interface KeyedRequest {
  readonly accountId: string;
  /** API key or user that sent the request. */
  readonly caller: string;
  readonly key: string;
  /** SHA-256 of method, path and body. */
  readonly hash: Buffer;
}

/** Permission to make one attempt at a request. */
export interface RequestClaim {
  readonly accountId: string;
  readonly key: string;
  readonly epoch: string;
  readonly seed: string;
  /** Whether this attempt takes over from an earlier one. */
  readonly resumes: boolean;
}

export interface StoredOutcome {
  readonly answer: Buffer | null;
  readonly failure: Buffer | null;
}

const keptFor = sql`interval '24 hours'`;

/** Age of the last heartbeat after which a gateway counts as dead. Heartbeats are sent every second. */
const silentFor = sql`interval '10 seconds'`;

/**
 * Claims a request that has no record or a record older than 24 hours. Also takes over an identical request of the same
 * caller if its heartbeats have stopped, and keeps the seed of the first attempt. Otherwise returns undefined.
 */
export async function claimRequest(
  db: Database,
  request: KeyedRequest,
  seed: string,
): Promise<RequestClaim | undefined> {
  const { accountId, caller, key, hash } = request;
  // Uses the time of the proposed row, so that all conditions of the statement agree.
  const isOld = sql<boolean>`idempotency_keys.created_at < excluded.created_at - ${keptFor}`;
  const row = await db.sql
    .insertInto("idempotency_keys")
    .values({ account_id: accountId, key, caller, request_hash: hash, seed, answer: null, failure: null })
    .onConflict((conflict) =>
      conflict
        .columns(["account_id", "key"])
        .doUpdateSet({
          caller,
          request_hash: hash,
          seed: sql`case when ${isOld} then excluded.seed else idempotency_keys.seed end`,
          epoch: sql`idempotency_keys.epoch + 1`,
          beat_at: sql<Date>`app_now()`,
          answer: null,
          failure: null,
          created_at: sql<Date>`case when ${isOld} then excluded.created_at else idempotency_keys.created_at end`,
        })
        .where(
          sql<boolean>`${isOld} or (idempotency_keys.answer is null and idempotency_keys.failure is null
            and idempotency_keys.beat_at < app_now() - ${silentFor}
            and idempotency_keys.caller = excluded.caller
            and idempotency_keys.request_hash = excluded.request_hash)`,
        ),
    )
    .returning(["epoch", "seed"])
    .executeTakeFirst();
  return row && { accountId, key, ...row, resumes: row.seed !== seed };
}

/** Returns the record of a key, if there is one. */
export async function findRequest(db: Database, accountId: string, key: string) {
  return db.sql
    .selectFrom("idempotency_keys")
    .select(["caller", "request_hash", "answer", "failure"])
    .where("account_id", "=", accountId)
    .where("key", "=", key)
    .executeTakeFirst();
}

/** Stores the outcome of a request. Returns false if a later attempt has taken over or an outcome is already stored. */
export async function storeOutcome(on: Database | Tx, claim: RequestClaim, outcome: StoredOutcome): Promise<boolean> {
  const update = on.sql
    .updateTable("idempotency_keys")
    .set(outcome)
    .where("account_id", "=", claim.accountId)
    .where("key", "=", claim.key)
    .where("epoch", "=", claim.epoch)
    .where("answer", "is", null)
    .where("failure", "is", null);
  return (await update.executeTakeFirst()).numUpdatedRows > 0n;
}

/** Deletes the record of a key, so that the same request counts as new. Returns false after a takeover. */
export async function releaseRequest(tx: Tx, { accountId, key, epoch }: RequestClaim): Promise<boolean> {
  const deletion = tx.sql.deleteFrom("idempotency_keys").where("account_id", "=", accountId).where("key", "=", key);
  return (await deletion.where("epoch", "=", epoch).executeTakeFirst()).numDeletedRows > 0n;
}

/** Ends a failed attempt, so that a retry may start at once. */
export async function abandonRequest(db: Database, { accountId, key, epoch }: RequestClaim): Promise<void> {
  await db.sql
    .updateTable("idempotency_keys")
    .set({ beat_at: sql<Date>`'-infinity'` })
    .where("account_id", "=", accountId)
    .where("key", "=", key)
    .where("epoch", "=", epoch)
    .execute();
}

/** Records heartbeats of running attempts. */
export async function recordHeartbeats(db: Database, claims: readonly RequestClaim[]): Promise<void> {
  const columns = [
    claims.map(({ accountId }) => accountId),
    claims.map(({ key }) => key),
    claims.map(({ epoch }) => epoch),
  ];
  await db.named(
    {
      name: "idempotency-beat",
      text: `update idempotency_keys k set beat_at = app_now()
        from unnest($1::text[], $2::text[], $3::bigint[]) as c (account_id, key, epoch)
        where k.account_id = c.account_id and k.key = c.key and k.epoch = c.epoch`,
    },
    columns,
  );
}

/** Deletes records older than 24 hours. */
export async function deleteOldRequests(db: Database): Promise<void> {
  await db.sql
    .deleteFrom("idempotency_keys")
    .where("created_at", "<", sql<Date>`(select app_now()) - ${keptFor}`)
    .execute();
}
