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

/** What an incident that opens by itself is called, by its one component. */
const titles: Readonly<Record<ComponentName, string>> = {
  api: "Requests fail",
  sessions: "Sessions do not start as they should",
  agent_sessions: "Agent sessions fail",
  live_view: "The live view does not work as it should",
  webhooks: "Webhooks are delivered late",
  billing: "Payments cannot be made",
};

const titleOf = ([first, ...others]: readonly ComponentName[]): string =>
  first === undefined || others.length > 0 ? "Several parts of the service fail" : titles[first];

const sentenceOf = (name: ComponentName, health: Health): string =>
  `${componentLabels[name]}: ${healthWords[health]}${health === "operational" ? " again" : ""}.`;

/** What the operator has said of a component, beside what was measured: maintenance counts before all else. */
export function declaredHealth(incidents: readonly IncidentRow[], name: ComponentName, at: number): Health {
  const own = incidents.filter(
    ({ origin, components, started_at: from }) =>
      origin !== "automatic" && components.includes(name) && from.getTime() <= at,
  );
  if (own.some(({ origin }) => origin === "maintenance")) return "maintenance";
  return worstOf(own.map(({ health }) => health));
}

/** What the one incident that opens by itself is made of. */
export interface Measured {
  readonly before: States;
  readonly after: States;
  readonly inMaintenance: ReadonlySet<ComponentName>;
}

/**
 * Opens, changes or closes the incident that comes of samplings: there is one at a time, of all that fails. Its texts are
 * fixed: nobody has looked at what went wrong yet.
 */
export function keepIncident(
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
    changeIncident(tx, open.id, "All is as it should be again.", at, { resolved: true });
    return;
  }
  const changed = componentNames.filter((name) => healthOf(before, name) !== healthOf(after, name));
  if (changed.length === 0) return;
  const text = changed.map((name) => sentenceOf(name, healthOf(after, name))).join(" ");
  const touched = componentNames.filter((name) => open.components.includes(name) || failing.includes(name));
  changeIncident(tx, open.id, text, at, { health, components: touched });
}

/** Opens and closes the incident of time in which nobody sampled. */
export function insertAbsence(tx: Tx, components: readonly ComponentName[], from: Date, to: Date, ids: Ids): void {
  const text = `Nothing answered from ${from.toISOString()} to ${to.toISOString()}.`;
  const incident = { origin: "automatic", title: "The service was away", health: "major_outage" } as const;
  insertIncident(tx, { ...incident, id: ids.next("inc"), components, from, to, text }, to);
}
