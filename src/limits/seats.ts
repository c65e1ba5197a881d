import { randomUUID } from "node:crypto";
import type { Part } from "../platform/lifetime.ts";

/** A seat that was granted, until it is given back; or how many are taken, when there is none left. */
export type Seat =
  | { readonly isGranted: true; readonly id: string; release(): void }
  | { readonly isGranted: false; readonly taken: number };

/** Seats of which an owner has so many: what lasts takes one for as long as it is open. */
export interface Seats extends Part {
  /** Takes a seat of an owner who may have so many. Memory answers at once, Redis by a promise. */
  take(owner: string, most: number): Seat | Promise<Seat>;
}

/** Seats in memory. */
export interface LocalSeats extends Seats {
  take(owner: string, most: number): Seat;
  /** The identifiers of the seats that each owner has taken. */
  readonly held: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Makes seats in memory. */
export function createSeats(): LocalSeats {
  const held = new Map<string, Set<string>>();
  return {
    held,
    take(owner, most) {
      const ids = held.get(owner) ?? new Set();
      if (ids.size >= most) return { isGranted: false, taken: ids.size };
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
