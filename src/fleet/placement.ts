import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { findCandidates, findWorker, lockCandidate, type WorkerAddress } from "./store.ts";

export type PlacementResult =
  | { readonly kind: "placed"; readonly worker: WorkerAddress }
  /** No live worker that accepts sessions has a free slot. */
  | { readonly kind: "full" }
  /** The chosen worker was filled, closed or lost meanwhile: retry the transaction. */
  | { readonly kind: "raced" }
  /** There are live workers, but none supports the runtime. */
  | { readonly kind: "not-integrated" };

/** Requirements and preferences for the worker of a session. */
export interface PlacementOptions {
  readonly runtime: string;
  /** A worker to avoid because it has just failed. */
  readonly except?: string;
  /** The worker to choose if it has a free slot. */
  readonly prefer?: string;
}

/**
 * Chooses a live worker with a free slot: the preferred worker, or else the least loaded. Ignores workers with failing
 * launches unless there are no others. Locks the worker until the transaction ends, so that the transaction can take
 * the slot by inserting a row. Only one worker is locked per transaction, because two locks could deadlock.
 */
export async function place(tx: Tx, { runtime, except, prefer }: PlacementOptions): Promise<PlacementResult> {
  const alive = await findCandidates(tx);
  const able = alive.filter(({ runtimes }) => runtimes.includes(runtime));
  if (alive.length > 0 && able.length === 0) return { kind: "not-integrated" };
  const open = able.filter((worker) => worker.open && worker.id !== except);
  // If launches fail on every worker, a worker is still tried, so that its error is reported.
  const sound = open.filter((worker) => !worker.launches_fail);
  const free = (sound.length > 0 ? sound : open).filter(({ held, slots }) => held < slots);
  const candidate = free.find(({ id }) => id === prefer) ?? free[0];
  if (!candidate) return { kind: "full" };
  const locked = await lockCandidate(tx, candidate.id);
  if (!locked || locked.held >= locked.slots) return { kind: "raced" };
  return { kind: "placed", worker: { id: locked.id, address: locked.address, secretHash: locked.secret_hash } };
}

/**
 * Returns the least loaded live worker that supports the runtime, even if the worker is full or accepts no sessions.
 * Reserves nothing.
 */
export async function chooseWorker(
  db: Queryable,
  { runtime, except }: PlacementOptions,
): Promise<WorkerAddress | "none" | "not-integrated"> {
  const alive = await findCandidates(db);
  const able = alive.filter(({ runtimes }) => runtimes.includes(runtime));
  if (alive.length > 0 && able.length === 0) return "not-integrated";
  const others = able.filter(({ id }) => id !== except);
  const chosen = others.find(({ held, slots }) => held < slots) ?? others[0];
  return (chosen && (await findWorker(db, chosen.id))) ?? "none";
}
