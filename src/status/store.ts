import { type Selectable, sql } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { Schema } from "../platform/postgres/schema.ts";
import type { ComponentName, Health } from "./components.ts";
import type { Facts, States } from "./judgement.ts";
import type { Span } from "./sla.ts";

/** Result of all judged samples. */
export interface StoredBoard {
  readonly judgedAt: number | undefined;
  readonly version: bigint;
  readonly states: States;
}

const asBoard = (row: Selectable<Schema["status_board"]>): StoredBoard => ({
  judgedAt: row.judged_at?.getTime(),
  version: BigInt(row.version),
  states: row.states,
});

/** Locks the board, so that samples are judged one after the other. */
export async function lockBoard(tx: Tx): Promise<StoredBoard> {
  return asBoard(await tx.sql.selectFrom("status_board").selectAll().forUpdate().executeTakeFirstOrThrow());
}

/** Saves the result of a sample. */
export function saveBoard(tx: Tx, states: States, at: Date): void {
  const row = { judged_at: at, states: JSON.stringify(states) };
  tx.send(tx.sql.updateTable("status_board").set(row));
}

/** Increments the version, so that gateways read the board again. */
export function bumpVersion(tx: Tx): void {
  tx.send(tx.sql.updateTable("status_board").set({ version: sql<string>`version + 1` }));
}

/** Replaces the latest facts of a gateway. */
export function saveFacts(tx: Tx, id: string, at: Date, facts: Facts): void {
  const row = { sampled_at: at, facts: JSON.stringify(facts) };
  tx.send(
    tx.sql
      .insertInto("status_gateways")
      .values({ id, ...row })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(row)),
  );
}

/** Removes a gateway that stops. */
export async function forgetGateway(db: Queryable, id: string): Promise<void> {
  await db.sql.deleteFrom("status_gateways").where("id", "=", id).execute();
}

/** Deletes gateways that have not sampled since `gateways`, and records that ended before `rest`. */
export async function deleteOldSamples(
  db: Queryable,
  before: { readonly gateways: Date; readonly rest: Date },
): Promise<void> {
  await db.sql.deleteFrom("status_gateways").where("sampled_at", "<", before.gateways).execute();
  await db.sql.deleteFrom("status_spans").where("ended_at", "<", before.rest).execute();
  await db.sql.deleteFrom("status_incidents").where("resolved_at", "<", before.rest).execute();
}

/** Reads the latest facts of all gateways. */
export async function readFacts(tx: Tx) {
  return await tx.sql.selectFrom("status_gateways").select(["sampled_at", "facts"]).execute();
}

/** Current health of a component. */
export interface OpenSpan {
  readonly component: ComponentName;
  readonly health: Health;
}

export async function readOpenSpans(tx: Tx): Promise<OpenSpan[]> {
  return await tx.sql
    .selectFrom("status_spans")
    .select(["component", "health"])
    .where("ended_at", "is", null)
    .execute();
}

/** Ends the open spans of components. */
export function endSpans(tx: Tx, components: readonly ComponentName[], at: Date): void {
  const open = tx.sql.updateTable("status_spans").set({ ended_at: at }).where("ended_at", "is", null);
  tx.send(open.where("component", "in", components));
}

export function insertSpans(tx: Tx, spans: readonly (OpenSpan & { readonly from: Date; readonly to?: Date })[]): void {
  const rows = spans.map(({ component, health, from, to }) => ({
    component,
    health,
    started_at: from,
    ended_at: to ?? null,
  }));
  tx.send(tx.sql.insertInto("status_spans").values(rows));
}

/** Reads the spans that ended after `since`, and the open spans, which are returned with the end `now`. */
export async function readSpans(db: Queryable, since: Date, now: Date): Promise<Span[]> {
  const rows = await db.sql
    .selectFrom("status_spans")
    .select(["component", "health", "started_at", "ended_at"])
    .where((has) => has.or([has("ended_at", "is", null), has("ended_at", ">", since)]))
    .execute();
  return rows.map(({ component, health, started_at: from, ended_at: to }) => ({
    component,
    health,
    from: from.getTime(),
    to: (to ?? now).getTime(),
  }));
}

/** Contents of the status page, read in one statement. */
export interface BoardReading {
  readonly version: bigint;
  readonly judgedAt: number | undefined;
  readonly states: States;
  readonly components: readonly (OpenSpan & { readonly since: number })[];
  readonly incidents: readonly StoredIncident[];
}

/** An incident with its updates, newest first. */
export interface StoredIncident {
  readonly id: string;
  readonly origin: string;
  readonly title: string;
  readonly health: Health;
  readonly components: readonly ComponentName[];
  readonly startedAt: number;
  readonly resolvedAt: number | undefined;
  readonly updates: readonly { readonly text: string; readonly at: number }[];
}

interface IncidentJson {
  readonly id: string;
  readonly origin: string;
  readonly title: string;
  readonly health: Health;
  readonly components: readonly ComponentName[];
  readonly started: number;
  readonly resolved: number | null;
  readonly updates: readonly { readonly text: string; readonly at: number }[];
}

const milliseconds = (column: string) => sql.raw(`(extract(epoch from ${column}) * 1000)::bigint`);

/** Reads the board with its open spans, and the incidents that are unresolved or ended after `endedAfter`. */
export async function readBoard(db: Queryable, endedAfter: Date): Promise<BoardReading> {
  interface Row {
    readonly version: string;
    readonly judged_at: Date | null;
    readonly states: States;
    readonly components: readonly { component: ComponentName; health: Health; since: number }[];
    readonly incidents: readonly IncidentJson[];
  }
  const { rows } = await sql<Row>`
    select version, judged_at, states,
      coalesce((select json_agg(json_build_object(
          'component', component, 'health', health, 'since', ${milliseconds("started_at")}))
        from status_spans where ended_at is null), '[]') as components,
      coalesce((select json_agg(json_build_object(
          'id', id, 'origin', origin, 'title', title, 'health', health, 'components', components,
          'started', ${milliseconds("started_at")}, 'resolved', ${milliseconds("resolved_at")},
          'updates', coalesce((select json_agg(json_build_object('text', text, 'at', ${milliseconds("created_at")})
              order by u.id desc)
            from status_updates u where u.incident_id = i.id), '[]')) order by started_at desc, id desc)
        from status_incidents i where resolved_at is null or resolved_at > ${endedAfter}), '[]') as incidents
    from status_board`.execute(db.sql);
  const [row] = rows;
  if (!row) throw new Error("expected a row in status_board, got none");
  return {
    ...asBoard({ ...row, id: true }),
    components: row.components,
    incidents: row.incidents.map(({ started, resolved, ...incident }) => ({
      ...incident,
      startedAt: started,
      resolvedAt: resolved ?? undefined,
    })),
  };
}
