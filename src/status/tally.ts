/** How some attempts went: those of one gateway within the last two samplings, or of all gateways together. */
export interface Outcomes {
  readonly total: number;
  readonly failed: number;
  /** Whose attempts have failed: accounts, three at most, or our own probe. */
  readonly seenBy: readonly string[];
}

/** Whom a fault of our own probe is seen by: it counts at once. */
export const ownProbe = "probe";

/** Accounts that must have seen a fault: one alone may cause it. */
export const witnesses = 3;

const none: Outcomes = { total: 0, failed: 0, seenBy: [] };

/** Adds up outcomes. */
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

/** Counts how attempts go. */
export interface Tally {
  /** Notes an attempt. `by` is the account that it was made for, `ownProbe`, or nobody who counts as a witness. */
  note(failed: boolean, by?: string): void;
  /** Gives what came of the last two samplings, the one that ends now among them. */
  take(): Outcomes;
}

/** Makes a tally. Two samplings are shown, so that what fails now and then is not lost between two looks. */
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
