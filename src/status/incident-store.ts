import type { Selectable } from "kysely";
import type { Queryable, Tx } from "../platform/postgres/database.ts";
import type { Schema } from "../platform/postgres/schema.ts";
import type { ComponentName, Health } from "./components.ts";
import { bumpVersion } from "./store.ts";
import type { IncidentOrigin } from "./tables.ts";

export type IncidentRow = Selectable<Schema["status_incidents"]>;

export interface NewIncident {
  readonly id: string;
  readonly origin: IncidentOrigin;
  readonly title: string;
  readonly health: Health;
  readonly components: readonly ComponentName[];
  readonly from: Date;
  /** End, if known. */
  readonly to?: Date;
  readonly text: string;
}

export function insertIncident(tx: Tx, { components, from, to, text, ...incident }: NewIncident, at: Date): void {
  const dates = { started_at: from, resolved_at: to ?? null, changed_at: at };
  tx.send(tx.sql.insertInto("status_incidents").values({ ...incident, ...dates, components: [...components] }));
  addUpdate(tx, incident.id, text, at);
}

function addUpdate(tx: Tx, incident_id: string, text: string, created_at: Date): void {
  tx.send(tx.sql.insertInto("status_updates").values({ incident_id, text, created_at }));
  bumpVersion(tx);
}

/** Fields to change with an update. */
export interface IncidentChange {
  readonly health?: Health;
  readonly components?: readonly ComponentName[];
  readonly resolved?: boolean;
}

/** Changes an incident and adds an update. */
export function changeIncident(tx: Tx, id: string, text: string, at: Date, change: IncidentChange = {}): void {
  const { components, health, resolved } = change;
  const row = {
    changed_at: at,
    ...(health && { health }),
    ...(components && { components: [...components] }),
    ...(resolved && { resolved_at: at }),
  };
  tx.send(tx.sql.updateTable("status_incidents").set(row).where("id", "=", id));
  addUpdate(tx, id, text, at);
}

/** Locks and returns current and future incidents. */
export async function lockUnresolved(tx: Tx, at: Date): Promise<IncidentRow[]> {
  return await tx.sql
    .selectFrom("status_incidents")
    .selectAll()
    .where((has) => has.or([has("resolved_at", "is", null), has("resolved_at", ">", at)]))
    .orderBy("id")
    .forUpdate()
    .execute();
}

/** Lists maintenance that overlaps a time range. */
export async function findMaintenance(db: Queryable, from: Date, to: Date): Promise<IncidentRow[]> {
  const all = db.sql.selectFrom("status_incidents").selectAll().where("origin", "=", "maintenance");
  return await all.where("started_at", "<", to).where("resolved_at", ">", from).execute();
}
