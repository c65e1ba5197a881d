import type { Ids } from "../platform/ids.ts";
import type { Tx } from "../platform/postgres/database.ts";
import {
  type ComponentName,
  componentLabels,
  componentNames,
  type Health,
  healthWords,
  worstOf,
} from "./components.ts";
import { changeIncident, type IncidentRow, insertIncident } from "./incident-store.ts";
import type { States } from "./judgement.ts";

/** Title of an automatic incident with one component. */
const titles: Readonly<Record<ComponentName, string>> = {
  api: "Requests fail",
  sessions: "Sessions fail to start",
  agent_sessions: "Agent sessions fail",
  live_view: "The live view fails",
  webhooks: "Webhooks are delivered late",
  billing: "Payments fail",
};

const titleOf = ([first, ...others]: readonly ComponentName[]): string =>
  first === undefined || others.length > 0 ? "Several components fail" : titles[first];

const sentenceOf = (name: ComponentName, health: Health): string =>
  `${componentLabels[name]}: ${healthWords[health]}${health === "operational" ? " again" : ""}.`;

/** Returns the health that the operator declared for a component. Maintenance takes precedence. */
export function declaredHealth(incidents: readonly IncidentRow[], name: ComponentName, at: number): Health {
  const own = incidents.filter(
    ({ origin, components, started_at: from }) =>
      origin !== "automatic" && components.includes(name) && from.getTime() <= at,
  );
  if (own.some(({ origin }) => origin === "maintenance")) return "maintenance";
  return worstOf(own.map(({ health }) => health));
}

/** Measured health before and after a sample, and the components in maintenance. */
export interface Measured {
  readonly before: States;
  readonly after: States;
  readonly inMaintenance: ReadonlySet<ComponentName>;
}

/**
 * Opens, updates or closes the automatic incident, which covers all failing components that are not in maintenance. Its
 * texts are fixed, because no operator has examined the fault yet.
 */
export function updateAutomaticIncident(
  tx: Tx,
  open: IncidentRow | undefined,
  { before, after, inMaintenance }: Measured,
  at: Date,
  ids: Ids,
): void {
  const healthOf = (states: States, name: ComponentName): Health => states[name]?.health ?? "operational";
  const failing = componentNames.filter((name) => healthOf(after, name) !== "operational" && !inMaintenance.has(name));
  const health = worstOf(failing.map((name) => healthOf(after, name)));
  if (!open) {
    if (failing.length === 0) return;
    const text = failing.map((name) => sentenceOf(name, healthOf(after, name))).join(" ");
    const incident = { id: ids.next("inc"), origin: "automatic", title: titleOf(failing), health } as const;
    insertIncident(tx, { ...incident, components: failing, from: at, text }, at);
    return;
  }
  if (failing.length === 0) {
    changeIncident(tx, open.id, "The problem is resolved.", at, { resolved: true });
    return;
  }
  const changed = componentNames.filter((name) => healthOf(before, name) !== healthOf(after, name));
  if (changed.length === 0) return;
  const text = changed.map((name) => sentenceOf(name, healthOf(after, name))).join(" ");
  const touched = componentNames.filter((name) => open.components.includes(name) || failing.includes(name));
  changeIncident(tx, open.id, text, at, { health, components: touched });
}

/** Adds a closed incident for a time without samples. */
export function insertAbsence(tx: Tx, components: readonly ComponentName[], from: Date, to: Date, ids: Ids): void {
  const text = `The service did not respond from ${from.toISOString()} to ${to.toISOString()}.`;
  const incident = { origin: "automatic", title: "The service was unavailable", health: "major_outage" } as const;
  insertIncident(tx, { ...incident, id: ids.next("inc"), components, from, to, text }, to);
}
