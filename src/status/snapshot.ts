import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Health as HealthNumber, type Status, StatusSchema } from "../gen/pilothouse/v1/status_pb.ts";
import { type ComponentName, componentNames, type Health, isWorse, worstOf } from "./components.ts";
import type { States } from "./judgement.ts";
import type { BoardReading, StoredIncident } from "./store.ts";

/** What is shown of now. */
export interface Snapshot {
  /** When it was seen. */
  readonly at: number;
  /** PostgreSQL is away: this is what was known, and what this gateway sees by itself. */
  readonly isAway: boolean;
  readonly components: readonly {
    readonly component: ComponentName;
    readonly health: Health;
    readonly since: number;
  }[];
  /** What is wrong now, and what was within the last days or is to come, newest first. */
  readonly incidents: readonly StoredIncident[];
}

/** Puts together what was read, and what this gateway takes components for where it cannot ask the others. */
export function snapshotOf({ components, incidents }: BoardReading, at: number, own?: States): Snapshot {
  const shown = componentNames.flatMap((name) => {
    const stored = components.find(({ component }) => component === name);
    const health = own?.[name]?.health;
    if (!stored) return health ? [{ component: name, health, since: at }] : [];
    return [health && isWorse(health, stored.health) ? { component: name, health, since: at } : stored];
  });
  return { at, isAway: own !== undefined, components: shown, incidents };
}

/** Says whether followers see a difference, but for the time. */
export function looksAlike(one: Snapshot, other: Snapshot): boolean {
  const lookOf = ({ components, incidents }: Snapshot) =>
    JSON.stringify([components.map(({ component, health }) => [component, health]), incidents]);
  return lookOf(one) === lookOf(other);
}

/** Says whether an incident goes on at a time. */
export const goesOn = ({ startedAt, resolvedAt }: StoredIncident, at: number): boolean =>
  startedAt <= at && (resolvedAt === undefined || resolvedAt > at);

/** The worst of the components. */
export const healthOf = ({ components }: Snapshot): Health => worstOf(components.map(({ health }) => health));

const numbers: Readonly<Record<Health, HealthNumber>> = {
  operational: HealthNumber.OPERATIONAL,
  degraded: HealthNumber.DEGRADED,
  partial_outage: HealthNumber.PARTIAL_OUTAGE,
  major_outage: HealthNumber.MAJOR_OUTAGE,
  maintenance: HealthNumber.MAINTENANCE,
};

/** What clients see of it. */
export function toStatusMessage(snapshot: Snapshot): Status {
  const { at, components, incidents } = snapshot;
  return create(StatusSchema, {
    status: numbers[healthOf(snapshot)],
    components: components.map(({ component: name, health, since }) => ({
      ...{ name, status: numbers[health], sinceAt: timestampFromMs(since) },
    })),
    incidents: incidents
      .filter((incident) => goesOn(incident, at))
      .map(({ id, title, health, components, startedAt, resolvedAt, updates }) => ({
        ...{ id, title, status: numbers[health], components: [...components] },
        startedAt: timestampFromMs(startedAt),
        ...(resolvedAt !== undefined && { resolvedAt: timestampFromMs(resolvedAt) }),
        updates: updates.map(({ text, at: said }) => ({ text, createdAt: timestampFromMs(said) })),
      })),
    updatedAt: timestampFromMs(at),
  });
}
