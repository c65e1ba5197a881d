/** Kind of slot: for healthy queues, for queues with slow attempts, or for failing queues. */
export type JobSlotKind = "healthy" | "slow" | "failing";

/** Slot of a running queue. */
export interface JobSlot {
  readonly owner: string;
  readonly kind: JobSlotKind;
  /** Moves to a slot of another kind. Returns false if none is free. */
  move(kind: JobSlotKind): boolean;
  release(): void;
}

/** Slots for the queues of one kind of job. */
export interface JobSlots {
  free(kind: JobSlotKind): number;
  take(kind: JobSlotKind, owner: string): JobSlot;
  /** Returns the number of taken slots by `<true or false: failing> <owner>`. */
  busy(): Record<string, number>;
}

/** Creates slots. Calls `onFree` whenever a slot becomes free. */
export function createJobSlots(counts: Readonly<Record<JobSlotKind, number>>, onFree: () => void): JobSlots {
  const free = { ...counts };
  const taken = new Set<JobSlot>();

  function take(first: JobSlotKind, owner: string): JobSlot {
    let kind = first;
    free[kind] -= 1;
    const freeSlot = (): void => {
      free[kind] += 1;
      onFree();
    };
    const slot: JobSlot = {
      owner,
      get kind() {
        return kind;
      },
      move(other) {
        if (other === kind) return true;
        if (free[other] <= 0) return false;
        freeSlot();
        kind = other;
        free[kind] -= 1;
        return true;
      },
      release() {
        taken.delete(slot);
        freeSlot();
      },
    };
    taken.add(slot);
    return slot;
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
