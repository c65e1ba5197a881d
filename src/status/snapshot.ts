import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Health as HealthNumber, type Status, StatusSchema } from "../gen/pilothouse/v1/status_pb.ts";
import { type ComponentName, componentNames, type Health, isWorse, worstOf } from "./components.ts";
import type { States } from "./judgement.ts";
import type { BoardReading, StoredIncident } from "./store.ts";

export interface Snapshot {
  readonly at: number;
  /** Whether PostgreSQL is down. If so, the snapshot is the last known status with this gateway's own findings. */
  readonly isDatabaseDown: boolean;
  readonly components: readonly {
    readonly component: ComponentName;
    readonly health: Health;
    readonly since: number;
  }[];
  /** Current, recent and planned incidents, newest first. */
  readonly incidents: readonly StoredIncident[];
}

/** Combines the stored board with this gateway's own states, if PostgreSQL is down. */
export function snapshotOf({ components, incidents }: BoardReading, at: number, own?: States): Snapshot {
  const shown = componentNames.flatMap((name) => {
    const stored = components.find(({ component }) => component === name);
    const health = own?.[name]?.health;
    if (!stored) return health ? [{ component: name, health, since: at }] : [];
    return [health && isWorse(health, stored.health) ? { component: name, health, since: at } : stored];
  });
  return { at, isDatabaseDown: own !== undefined, components: shown, incidents };
}

/** Returns whether two snapshots have the same incidents and the same health of components. */
export function isSameStatus(one: Snapshot, other: Snapshot): boolean {
  const fingerprintOf = ({ components, incidents }: Snapshot) =>
    JSON.stringify([components.map(({ component, health }) => [component, health]), incidents]);
  return fingerprintOf(one) === fingerprintOf(other);
}

/** Returns whether an incident is in progress. */
export const isOngoing = ({ startedAt, resolvedAt }: StoredIncident, at: number): boolean =>
  startedAt <= at && (resolvedAt === undefined || resolvedAt > at);

/** Returns the worst health of the components. */
export const healthOf = ({ components }: Snapshot): Health => worstOf(components.map(({ health }) => health));

const numbers: Readonly<Record<Health, HealthNumber>> = {
  operational: HealthNumber.OPERATIONAL,
  degraded: HealthNumber.DEGRADED,
  partial_outage: HealthNumber.PARTIAL_OUTAGE,
  major_outage: HealthNumber.MAJOR_OUTAGE,
  maintenance: HealthNumber.MAINTENANCE,
};

/** Converts a snapshot to its public message, which contains only the incidents in progress. */
export function toStatusMessage(snapshot: Snapshot): Status {
  const { at, components, incidents } = snapshot;
  return create(StatusSchema, {
    status: numbers[healthOf(snapshot)],
    components: components.map(({ component: name, health, since }) => ({
      name,
      status: numbers[health],
      sinceAt: timestampFromMs(since),
    })),
    incidents: incidents
      .filter((incident) => isOngoing(incident, at))
      .map(({ id, title, health, components, startedAt, resolvedAt, updates }) => ({
        id,
        title,
        status: numbers[health],
        components: [...components],
        startedAt: timestampFromMs(startedAt),
        ...(resolvedAt !== undefined && { resolvedAt: timestampFromMs(resolvedAt) }),
        updates: updates.map(({ text, at: createdAt }) => ({ text, createdAt: timestampFromMs(createdAt) })),
      })),
    updatedAt: timestampFromMs(at),
  });
}
