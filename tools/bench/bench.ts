/** Number of samples. */
export interface Scale {
  /** Returns `full`, or `quick` for a quick run. */
  of(full: number, quick: number): number;
}

/** A row of a bench's table. */
export interface Row {
  readonly what: string;
  readonly ours: string;
  readonly bare: string;
  /** Comparison with the bar if there is a bar, else an explanation of the figures. */
  readonly verdict: string;
}

/** A measurement, compared with a baseline if there is one. */
export interface Bench {
  readonly name: string;
  /** Compared sides and method. */
  readonly title: string;
  /** Measures and returns rows. Does not assert: a missed bar is printed. */
  run(scale: Scale): Promise<readonly Row[]>;
}

/** Compares a ratio with its upper bar. */
export function ratioVerdict(measured: number, bar: number): string {
  return verdict(measured <= bar, `bar <= ${bar.toFixed(2)}x, measured ${measured.toFixed(2)}x`);
}

/** Compares a ratio with its lower bar. */
export function atLeastVerdict(measured: number, bar: number): string {
  return verdict(measured >= bar, `bar >= ${bar.toFixed(2)}x, measured ${measured.toFixed(2)}x`);
}

/** Compares a figure with its upper bar. */
export function boundVerdict(measured: number, bar: number, unit: string): string {
  return verdict(measured <= bar, `bar <= ${bar} ${unit}, measured ${measured.toFixed(1)} ${unit}`);
}

function verdict(isMet: boolean, text: string): string {
  return isMet ? text : `${text}  MISSED`;
}
