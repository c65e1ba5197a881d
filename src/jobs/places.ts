/** What a lane has a place among: those that work, those whose attempts take long, and those that fail. */
export type PlaceKind = "sound" | "slow" | "failing";

/** The place of a lane that is run. */
export interface Place {
  readonly owner: string;
  readonly kind: PlaceKind;
  /** Moves to a place of another kind; false when none is free. */
  move(kind: PlaceKind): boolean;
  leave(): void;
}

/** The places for lanes of one kind of work. */
export interface Places {
  free(kind: PlaceKind): number;
  take(kind: PlaceKind, owner: string): Place;
  /** Counts those that are taken, by whether their lanes fail and the owner, with a space between. */
  busy(): Record<string, number>;
}

/** Makes places; tells of each one that becomes free. */
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
