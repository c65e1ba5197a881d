import type { HeldSession, PendingProfile, WorkerEvent } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Tx } from "../platform/postgres/database.ts";

/** The start of a worker's process that says something. */
export interface WorkerIncarnation {
  readonly workerId: string;
  readonly incarnation: bigint;
}

/** How workers have gone: `destroyed` when we have stopped them. */
export interface WorkerEnd {
  readonly reason: "worker_lost" | "destroyed";
  readonly detail: string;
}

/** What the fleet needs of those who keep the sessions. */
export interface SessionKeeper {
  /** Ends all running sessions of a worker that was started again, with their events; says how many those were. */
  endAllOf(tx: Tx, workerId: string, end: WorkerEnd): Promise<number>;
  /** The same for workers that were lost a short time ago. Sessions that a transaction holds are left for the next time. */
  endOrphaned(tx: Tx, end: WorkerEnd): Promise<number>;
  /** Ends sessions that are still provisioning after their deadline, and those that run although their time is up. */
  endOverdue(tx: Tx): Promise<number>;
  /** Applies a worker's event, which happened so many milliseconds ago, once; one that is stale or was applied before changes nothing. */
  apply(tx: Tx, from: WorkerIncarnation, event: WorkerEvent, agoMs: () => number): Promise<void>;
  /** Of the sessions that a worker has, those that it must not have: ended, or placed elsewhere. */
  unwanted(workerId: string, held: readonly HeldSession[]): Promise<HeldSession[]>;
  /** Of the profiles that wait on a worker, those that are saved or come too late. The others are taken. */
  settledProfiles(workerId: string, pending: readonly PendingProfile[]): Promise<HeldSession[]>;
}
