/** Counts of attempts: of one gateway within the last two samples, or summed over gateways. */
export interface Outcomes {
  readonly total: number;
  readonly failed: number;
  /** Up to three accounts with failed attempts. May include `ownProbe`. */
  readonly seenBy: readonly string[];
}

/** Marks a failure of the gateway's own probe, which needs no further witnesses. */
export const ownProbe = "probe";

/** Number of accounts that must see a fault, because a single account may cause failures itself. */
export const witnesses = 3;

const none: Outcomes = { total: 0, failed: 0, seenBy: [] };

/** Adds up counts, and combines up to three accounts with failed attempts. */
export function sumOf(all: readonly Outcomes[]): Outcomes {
  return all.reduce<Outcomes>(
    (sum, { total, failed, seenBy }) => ({
      total: sum.total + total,
      failed: sum.failed + failed,
      seenBy: [...new Set([...sum.seenBy, ...seenBy])].slice(0, witnesses),
    }),
    none,
  );
}

/** Counts successes and failures. */
export interface Tally {
  /** Counts an attempt. `by` is the account of the attempt, `ownProbe`, or undefined if there is no witness. */
  note(failed: boolean, by?: string): void;
  /** Returns the counts of the last two samples, and starts a new sample. */
  take(): Outcomes;
}

/** Creates a counter, which covers two samples so that intermittent faults appear in consecutive samples. */
export function createTally(): Tally {
  let before = none;
  let total = 0;
  let failed = 0;
  let seenBy = new Set<string>();
  return {
    note(hasFailed, by) {
      total += 1;
      if (!hasFailed) return;
      failed += 1;
      if (by !== undefined && (seenBy.size < witnesses || by === ownProbe)) seenBy.add(by);
    },
    take() {
      const now = { total, failed, seenBy: [...seenBy] };
      const both = sumOf([now, before]);
      before = now;
      total = 0;
      failed = 0;
      seenBy = new Set();
      return both;
    },
  };
}
