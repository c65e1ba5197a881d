import { sql } from "kysely";
import type { WorkerAddress } from "../../fleet/store.ts";
import type { Database, Tx } from "../../platform/postgres/database.ts";

/** Maximum number of fetches at once in one browser. */
const browserCapacity = 4;

export interface NewFetch {
  readonly id: string;
  readonly accountId: string;
  readonly browserId: string;
  readonly optionsHash: Buffer;
  readonly workerId: string;
  readonly tier: string;
  /** Milliseconds after which the fetch counts as ended if its gateway does not end it. */
  readonly lapsesAfter: number;
}

/** A browser in which a fetch can run, and its worker. */
export interface FetchBrowser {
  readonly browserId: string;
  readonly worker: WorkerAddress;
}

/** Finds a browser of the account in which fetches with these options run, and which can run one more fetch. */
export async function findSharedBrowser(
  tx: Tx,
  accountId: string,
  optionsHash: Buffer,
): Promise<FetchBrowser | undefined> {
  const row = await tx.sql
    .selectFrom("fetches")
    .innerJoin("workers", "workers.id", "worker_id")
    .select(["browser_id", "worker_id", "address", "secret_hash"])
    .where("account_id", "=", accountId)
    .where("options_hash", "=", optionsHash)
    .where("lapses_at", ">", sql<Date>`app_now()`)
    .groupBy(["browser_id", "worker_id", "address", "secret_hash"])
    .having(sql<number>`count(*)`, "<", browserCapacity)
    .limit(1)
    .executeTakeFirst();
  if (!row) return undefined;
  const worker = { id: row.worker_id, address: row.address, secretHash: row.secret_hash };
  return { browserId: row.browser_id, worker };
}

/** Inserts a fetch that begins now. The commit waits for the statement. */
export function insertFetch(tx: Tx, fetch: NewFetch): void {
  tx.send(
    tx.sql.insertInto("fetches").values({
      id: fetch.id,
      account_id: fetch.accountId,
      browser_id: fetch.browserId,
      options_hash: fetch.optionsHash,
      worker_id: fetch.workerId,
      tier: fetch.tier,
      began_at: sql<Date>`app_now()`,
      lapses_at: sql<Date>`app_now() + ${fetch.lapsesAfter} * interval '1 millisecond'`,
    }),
  );
}

/**
 * Deletes a fetch. Returns the present time in ms since the epoch, as the end of the fetch. Returns undefined if the
 * row was already deleted, because the fetch had lapsed.
 */
export async function deleteFetch(tx: Tx, id: string): Promise<number | undefined> {
  const row = await tx.sql
    .deleteFrom("fetches")
    .where("id", "=", id)
    .returning(sql<number>`floor(extract(epoch from app_now()) * 1000)::float8`.as("ended_at"))
    .executeTakeFirst();
  return row?.ended_at;
}

/** Deletes lapsed fetches, which their gateways did not end. */
export async function deleteLapsedFetches(db: Database): Promise<void> {
  await db.sql.deleteFrom("fetches").where("lapses_at", "<", sql<Date>`app_now()`).execute();
}
