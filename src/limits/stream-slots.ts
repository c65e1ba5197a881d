import { randomUUID } from "node:crypto";
import type { Part } from "../platform/lifetime.ts";

/** A granted slot, or the number of taken slots if none is free. */
export type StreamSlot =
  | { readonly isGranted: true; readonly id: string; release(): void }
  | { readonly isGranted: false; readonly taken: number };

/** Concurrency limit per owner. Each open stream holds a slot. */
export interface StreamSlots extends Part {
  /** Takes a slot if the owner holds fewer than `max`. Returns a promise if slots are in Redis. */
  take(owner: string, max: number): StreamSlot | Promise<StreamSlot>;
}

export interface LocalStreamSlots extends StreamSlots {
  take(owner: string, max: number): StreamSlot;
  /** Ids of the taken slots of each owner. */
  readonly held: ReadonlyMap<string, ReadonlySet<string>>;
}

export function createStreamSlots(): LocalStreamSlots {
  const held = new Map<string, Set<string>>();
  return {
    held,
    take(owner, max) {
      const ids = held.get(owner) ?? new Set();
      if (ids.size >= max) return { isGranted: false, taken: ids.size };
      const id = randomUUID();
      held.set(owner, ids.add(id));
      return {
        isGranted: true,
        id,
        release() {
          ids.delete(id);
          if (ids.size === 0) held.delete(owner);
        },
      };
    },
  };
}
