/** Kind of slot: for healthy queues, for queues with slow attempts, or for failing queues. */
export type PlaceKind = "sound" | "slow" | "failing";

/** Slot of a running queue. */
export interface Place {
  readonly owner: string;
  readonly kind: PlaceKind;
  /** Moves to a slot of another kind. Returns false if none is free. */
  move(kind: PlaceKind): boolean;
  leave(): void;
}

/** Slots for the queues of one kind. */
export interface Places {
  free(kind: PlaceKind): number;
  take(kind: PlaceKind, owner: string): Place;
  /** Counts the taken slots by `<is failing> <owner>`. */
  busy(): Record<string, number>;
}

/** Creates slots. Calls `onFree` for each released slot. */
export function createPlaces(counts: Readonly<Record<PlaceKind, number>>, onFree: () => void): Places {
  const free = { ...counts };
  const taken = new Set<Place>();

  function take(first: PlaceKind, owner: string): Place {
    let kind = first;
    free[kind] -= 1;
    const give = (): void => {
      free[kind] += 1;
      onFree();
    };
    const place: Place = {
      owner,
      get kind() {
        return kind;
      },
      move(other) {
        if (other === kind) return true;
        if (free[other] <= 0) return false;
        give();
        kind = other;
        free[kind] -= 1;
        return true;
      },
      leave() {
        taken.delete(place);
        give();
      },
    };
    taken.add(place);
    return place;
  }

  return {
    free: (kind) => free[kind],
    take,
    busy() {
      const counts: Record<string, number> = {};
      for (const { owner, kind } of taken) {
        const key = `${kind === "failing"} ${owner}`;
        counts[key] = (counts[key] ?? 0) + 1;
      }
      return counts;
    },
  };
}
