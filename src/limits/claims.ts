import { randomUUID } from "node:crypto";
import type { Part } from "../platform/lifetime.ts";

/** A place that was claimed, until it is given back; or how many are taken, when there is none left. */
export type Claim =
  | { readonly isGranted: true; readonly id: string; release(): void }
  | { readonly isGranted: false; readonly taken: number };

/** Places of which an owner has so many at once: what lasts claims one for as long as it is open. */
export interface Claims extends Part {
  /** Claims a place of an owner who may have so many. Memory answers at once, Redis by a promise. */
  take(owner: string, most: number): Claim | Promise<Claim>;
}

/** Claims in memory. */
export interface LocalClaims extends Claims {
  take(owner: string, most: number): Claim;
  /** The identifiers of what each owner has claimed. */
  readonly held: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Makes claims in memory. */
export function createClaims(): LocalClaims {
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
