import type { Queryable, Tx } from "../platform/postgres/database.ts";
import { findCandidates, findWorker, lockCandidate, type WorkerAddress } from "./store.ts";

/** Where a session could be put. */
export type Placement =
  | { readonly kind: "placed"; readonly worker: WorkerAddress }
  /** No live worker that takes new sessions has a free slot at the moment. */
  | { readonly kind: "full" }
  /** Another placement was faster: the transaction has to begin anew. */
  | { readonly kind: "raced" }
  /** There are live workers, and none of them can launch the runtime. */
  | { readonly kind: "not-integrated" };

/** What a session asks of a worker. */
export interface PlacementWish {
  readonly runtime: string;
  /** A worker that has just failed. */
  readonly except?: string;
}

/**
 * Chooses the least loaded live worker with a free slot, and one whose launches fail only where there is no other. Locks
 * it until the transaction ends, so that the session's row, inserted in the same transaction, takes that slot. One worker is locked per transaction: two could deadlock.
 */
export async function place(tx: Tx, { runtime, except }: PlacementWish): Promise<Placement> {
  const alive = await findCandidates(tx);
  const able = alive.filter(({ runtimes }) => runtimes.includes(runtime));
  if (alive.length > 0 && able.length === 0) return { kind: "not-integrated" };
  const open = able.filter((worker) => worker.open && worker.id !== except);
  // Where all launches fail, one is tried all the same: it says why.
  const sound = open.filter((worker) => !worker.launches_fail);
  const candidate = (sound.length > 0 ? sound : open).find(({ held, slots }) => held < slots);
  if (!candidate) return { kind: "full" };
  const locked = await lockCandidate(tx, candidate.id);
  if (!locked || locked.held >= locked.slots) return { kind: "raced" };
  return { kind: "placed", worker: { id: locked.id, address: locked.address, secretHash: locked.secret_hash } };
}

/** Finds the worker that a session would be put on now, be it full, and reserves nothing. */
export async function chooseWorker(
  db: Queryable,
  { runtime, except }: PlacementWish,
): Promise<WorkerAddress | "none" | "not-integrated"> {
  const alive = await findCandidates(db);
  const able = alive.filter(({ runtimes }) => runtimes.includes(runtime));
  if (alive.length > 0 && able.length === 0) return "not-integrated";
  const others = able.filter(({ id }) => id !== except);
  const chosen = others.find(({ held, slots }) => held < slots) ?? others[0];
  return (chosen && (await findWorker(db, chosen.id))) ?? "none";
}
