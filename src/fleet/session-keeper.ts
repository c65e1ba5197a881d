import type { RawBuilder, SqlBool } from "kysely";
import type { EndedSessionLog, HeldSession, PendingProfile, WorkerEvent } from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Tx } from "../platform/postgres/database.ts";

/** A reporting worker process. The incarnation counts the worker's restarts. */
export interface WorkerIncarnation {
  readonly workerId: string;
  readonly incarnation: bigint;
}

/** Reason for the end of a worker's sessions: `worker_drained` if the service stopped the worker. */
export interface WorkerEnd {
  readonly reason: "worker_lost" | "worker_drained";
  readonly detail: string;
}

/** Session operations that the fleet depends on. */
export interface SessionKeeper {
  /** Ends all running sessions of a restarted worker and adds their events. Returns their number. */
  endAllOf(tx: Tx, workerId: string, end: WorkerEnd): Promise<number>;
  /** Ends the sessions of recently lost workers. Skips rows locked by other transactions. Returns their number. */
  endOrphaned(tx: Tx, end: WorkerEnd): Promise<number>;
  /** Condition in SQL: there are sessions past their deadline to start or to run. */
  readonly overdueExist: RawBuilder<SqlBool>;
  /** Ends the sessions past their deadline. Returns their number. */
  endOverdue(tx: Tx): Promise<number>;
  /** Applies a worker's event once. Ignores stale and repeated events. `agoMs` returns the event's age. */
  apply(tx: Tx, from: WorkerIncarnation, event: WorkerEvent, agoMs: () => number): Promise<void>;
  /** Stores logs of ended sessions and returns their number. Undefined if the process has no keys to seal logs. */
  readonly storeLogs?: ((workerId: string, logs: readonly EndedSessionLog[]) => Promise<number>) | undefined;
  /** Returns those of the held sessions that have ended or were placed on another worker. */
  unwanted(workerId: string, held: readonly HeldSession[]): Promise<HeldSession[]>;
  /** Requests the save of pending profiles. Returns the profiles to drop: saved, failed or outdated ones. */
  settledProfiles(workerId: string, pending: readonly PendingProfile[]): Promise<HeldSession[]>;
}
