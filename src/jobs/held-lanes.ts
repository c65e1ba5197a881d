import type { Database } from "../platform/postgres/database.ts";
import { createRepeatedJob, type RepeatedJobParts } from "../platform/repeated-job.ts";
import { type ClaimedLane, renewLeases } from "./store.ts";

/** Milliseconds. What a gateway had that died is another's when its lease has lapsed. */
const leaseMs = 8_000;
const renewAfter = 2_000;

/** Milliseconds. Leases that are old enough are renewed a few at a time, as they were taken: many at once hold up the rest. */
const renewEvery = 250;

/** A lane that this gateway has. */
export interface HeldLane extends ClaimedLane {
  /** Aborts when the lease is no longer ours, as far as we know. */
  readonly lease: AbortSignal;
  /** Resolves when a job was added to the lane since it was last asked for. */
  news(): Promise<void>;
}

/** The lanes that this gateway has, whose leases it renews. */
export interface HeldLanes {
  /** Milliseconds for which a lane is to be claimed. */
  readonly leaseMs: number;
  /** Returns the number of the gateway's lock, or 0 while the lock is not held. */
  gateway(): number;
  /** Takes note of a lane that was claimed by a statement sent at `askedAt`, in milliseconds of `performance.now()`. */
  add(lane: ClaimedLane, askedAt: number): HeldLane;
  remove(lane: HeldLane): void;
  /** Says whether the lane is held, and tells its holder that a job was added. */
  wake(kind: string, lane: string): boolean;
  start(): void;
  stop(): Promise<void>;
}

interface Entry {
  readonly held: HeldLane;
  /** Notes when the lease was last asked for. */
  renewed(askedAt: number): void;
  isOld(): boolean;
  lose(): void;
  tell(): void;
  close(): void;
}

/** Takes a lane for lost a second before another gateway may claim it. */
function makeEntry(lane: ClaimedLane, askedAt: number): Entry {
  const lease = new AbortController();
  const lose = (): void => lease.abort(new Error("the lease of the lane has lapsed"));
  let timer: NodeJS.Timeout;
  let news = Promise.withResolvers<void>();
  let leasedAt: number;
  const renewed = (asked: number): void => {
    clearTimeout(timer);
    leasedAt = asked;
    timer = setTimeout(lose, asked + leaseMs - 1_000 - performance.now());
  };
  renewed(askedAt);
  return {
    held: { ...lane, lease: lease.signal, news: () => news.promise },
    renewed,
    isOld: () => performance.now() - leasedAt >= renewAfter,
    lose,
    tell() {
      news.resolve();
      news = Promise.withResolvers();
    },
    close: () => clearTimeout(timer),
  };
}

export interface HeldLanesParts extends RepeatedJobParts {
  readonly db: Database;
  readonly gateway: () => number;
}

/** Makes the books of the lanes that this gateway has: none yet. */
export function createHeldLanes({ db, gateway, ...parts }: HeldLanesParts): HeldLanes {
  const byName = new Map<string, Entry>();
  const nameOf = (kind: string, lane: string): string => `${kind} ${lane}`;

  async function renew(): Promise<void> {
    const entries = [...byName.values()].filter(({ isOld }) => isOld());
    if (entries.length === 0) return;
    const askedAt = performance.now();
    const claims = entries.map(({ held }) => held.claim);
    const standing = new Set(await renewLeases(db, claims, leaseMs));
    for (const { held, renewed, lose } of entries) standing.has(held.claim) ? renewed(askedAt) : lose();
  }

  return {
    leaseMs,
    gateway,
    add(lane, askedAt) {
      const entry = makeEntry(lane, askedAt);
      byName.set(nameOf(lane.kind, lane.lane), entry);
      return entry.held;
    },
    remove({ kind, lane, claim }) {
      const entry = byName.get(nameOf(kind, lane));
      if (entry?.held.claim !== claim) return;
      byName.delete(nameOf(kind, lane));
      entry.close();
    },
    wake(kind, lane) {
      const entry = byName.get(nameOf(kind, lane));
      entry?.tell();
      return entry !== undefined;
    },
    ...createRepeatedJob({ run: renew, every: renewEvery, complaint: "leases of work cannot be renewed" }, parts),
  };
}
