/** How many samples a bench takes. */
export interface Scale {
  /** Gives the first number, or the second when only a quick look is wanted. */
  of(full: number, quick: number): number;
}

/** One line of a bench's table. */
export interface Row {
  readonly what: string;
  readonly ours: string;
  readonly bare: string;
  /** Where a bar is set: what it is and what was measured; else what the figures say. */
  readonly verdict: string;
}

/** Something that is measured, against the bare thing where there is one. */
export interface Bench {
  readonly name: string;
  /** What is compared with what, and how. */
  readonly title: string;
  /** Measures, and says what it found. Nothing is asserted: a bar that is missed is printed. */
  run(scale: Scale): Promise<readonly Row[]>;
}

/** Says how a ratio stands to its bar, which is its upper bound. */
export function ratioVerdict(measured: number, bar: number): string {
  return verdict(measured <= bar, `bar <= ${bar.toFixed(2)}x, measured ${measured.toFixed(2)}x`);
}

/** Says how a ratio stands to its bar, which is its lower bound. */
export function atLeastVerdict(measured: number, bar: number): string {
  return verdict(measured >= bar, `bar >= ${bar.toFixed(2)}x, measured ${measured.toFixed(2)}x`);
}

/** Says how a figure stands to its bar, which is its upper bound. */
export function boundVerdict(measured: number, bar: number, unit: string): string {
  return verdict(measured <= bar, `bar <= ${bar} ${unit}, measured ${measured.toFixed(1)} ${unit}`);
}

function verdict(isMet: boolean, text: string): string {
  return isMet ? text : `${text}  MISSED`;
}
