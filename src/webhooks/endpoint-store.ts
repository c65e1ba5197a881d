import { type Insertable, type RawBuilder, type Selectable, type SqlBool, sql } from "kysely";
import { type Failure, fail } from "../platform/errors.ts";
import type { Database, NamedStatement, Queryable, Tx } from "../platform/postgres/database.ts";
import type { WebhookEndpointsTable } from "./tables.ts";

type Endpoint = Selectable<WebhookEndpointsTable>;

export interface EndpointRow extends Endpoint {
  readonly counts: {
    readonly pending: number;
    readonly delivered: number;
    readonly failed: number;
    readonly dlq: number;
    readonly replayed: number;
  };
}

export interface EndpointId {
  readonly id: string;
  readonly accountId: string;
}

const counts = sql<EndpointRow["counts"]>`(
  select jsonb_build_object('pending', pending, 'delivered', delivered, 'failed', failed, 'dlq', dlq, 'replayed', (
    select count(*) from webhook_deliveries
    where endpoint_id = webhook_endpoints.id and status = 'dlq' and replayed_at is not null
  ))
  from webhook_counts where endpoint_id = webhook_endpoints.id
)`.as("counts");

/** Counts all endpoints and the active endpoints of an account. */
export async function countEndpoints(db: Queryable, accountId: string): Promise<{ all: number; active: number }> {
  return db.sql
    .selectFrom("webhook_endpoints")
    .select([sql<number>`count(*)::int`.as("all"), sql<number>`(count(*) filter (where active))::int`.as("active")])
    .where("account_id", "=", accountId)
    .executeTakeFirstOrThrow();
}

/** Inserts an endpoint with counts of 0. */
export async function insertEndpoint(tx: Tx, endpoint: Insertable<WebhookEndpointsTable>): Promise<EndpointRow> {
  await tx.sql.insertInto("webhook_endpoints").values(endpoint).execute();
  await tx.sql.insertInto("webhook_counts").values({ endpoint_id: endpoint.id }).execute();
  return selectEndpoints(tx).where("id", "=", endpoint.id).executeTakeFirstOrThrow();
}

const selectEndpoints = (db: Queryable) => db.sql.selectFrom("webhook_endpoints").selectAll().select(counts);

const selectEndpoint = (db: Queryable, { id, accountId }: EndpointId) =>
  selectEndpoints(db).where("id", "=", id).where("account_id", "=", accountId);

/** The failure for an unknown endpoint or an endpoint of another account. */
export const noEndpoint = (): Failure => fail("not-found", {}, { detail: "no webhook has this id" });

export async function findEndpoint(db: Database, endpoint: EndpointId): Promise<EndpointRow | undefined> {
  return selectEndpoint(db, endpoint).executeTakeFirst();
}

/** Finds an endpoint of an account, and locks it against changes and deletion. */
export async function lockEndpoint(tx: Tx, endpoint: EndpointId): Promise<EndpointRow | undefined> {
  return selectEndpoint(tx, endpoint).forUpdate("webhook_endpoints").executeTakeFirst();
}

export interface EndpointListQuery {
  readonly accountId: string;
  readonly active: boolean | undefined;
  /** Identifier of an endpoint. Only older endpoints are listed. */
  readonly before: string | undefined;
  readonly limit: number;
}

/** Lists endpoints, newest first. */
export async function listEndpoints(db: Database, query: EndpointListQuery): Promise<EndpointRow[]> {
  let select = selectEndpoints(db).where("account_id", "=", query.accountId);
  if (query.active !== undefined) select = select.where("active", "=", query.active);
  if (query.before !== undefined) select = select.where("id", "<", query.before);
  return select.orderBy("id", "desc").limit(query.limit).execute();
}

export type EndpointChanges = Partial<
  Omit<Endpoint, "id" | "account_id" | "created_at" | "last_failure_at"> & { readonly updated_at: Date }
>;

/** Updates a locked endpoint. */
export async function updateEndpoint(tx: Tx, id: string, changes: EndpointChanges): Promise<EndpointRow> {
  await tx.sql.updateTable("webhook_endpoints").set(changes).where("id", "=", id).execute();
  return selectEndpoints(tx).where("id", "=", id).executeTakeFirstOrThrow();
}

/** Deletes an endpoint with its counts. Its deliveries become inaccessible, and are deleted when 30 days old. */
export async function deleteEndpoint(tx: Tx, id: string): Promise<void> {
  await tx.sql.deleteFrom("webhook_endpoints").where("id", "=", id).execute();
}

/** An active endpoint and its subscription. */
export interface Subscriber {
  readonly id: string;
  readonly account_id: string;
  /** `*` subscribes to all types. */
  readonly events: readonly string[];
}

const subscribersStatement: NamedStatement = {
  name: "webhook-subscribers",
  text: "select id, account_id, events from webhook_endpoints where account_id = any($1) and active order by id",
};

export function findSubscribers(db: Queryable, accountIds: readonly string[]): Promise<Subscriber[]> {
  return db.named<Subscriber>(subscribersStatement, [accountIds]);
}

/** Returns why an endpoint receives no events; undefined if it is active. `active` is null for a deleted endpoint. */
export function inactiveReason(active: boolean | null): "endpoint_deleted" | "endpoint_inactive" | undefined {
  if (active === null) return "endpoint_deleted";
  return active ? undefined : "endpoint_inactive";
}

/** Like `inactiveReason`, for an identifier. Locks the endpoint against changes. */
export async function findInactiveReason(tx: Tx, id: string): Promise<ReturnType<typeof inactiveReason>> {
  const select = tx.sql.selectFrom("webhook_endpoints").select("active").where("id", "=", id).forShare();
  return inactiveReason((await select.executeTakeFirst())?.active ?? null);
}

/** Condition of `findFailing`. Uses the partial index `webhook_endpoints_failing`. */
const hasFailed = (since: Date, apartMs: number) =>
  sql<boolean>`active and failing_since <= ${since}
    and last_failure_at >= failing_since + ${apartMs} * interval '1 millisecond'`;

/** Condition: `findFailing` would return at least one endpoint. */
export const endpointsAreFailing = (since: Date, apartMs: number): RawBuilder<SqlBool> =>
  sql`exists (select from webhook_endpoints where ${hasFailed(since, apartMs)})`;

/** Finds active endpoints with the first failure at `since` or before, and the last at least `apartMs` later. */
export async function findFailing(db: Queryable, since: Date, apartMs: number): Promise<string[]> {
  const select = db.sql.selectFrom("webhook_endpoints").select("id").where(hasFailed(since, apartMs));
  return (await select.execute()).map(({ id }) => id);
}

/** Deactivates an endpoint. Returns undefined if the endpoint no longer meets the condition of `findFailing`. */
export async function closeFailing(
  tx: Tx,
  { id, since, at, apartMs }: { id: string; since: Date; at: Date; apartMs: number },
): Promise<Pick<Endpoint, "account_id" | "url"> | undefined> {
  return tx.sql
    .updateTable("webhook_endpoints")
    .set({ active: false, updated_at: at })
    .where("id", "=", id)
    .where(hasFailed(since, apartMs))
    .returning(["account_id", "url"])
    .executeTakeFirst();
}
