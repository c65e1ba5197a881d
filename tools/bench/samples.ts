/** Gives the value that a share of the sorted samples does not exceed. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new Error("there are no samples");
  return value;
}

/** Gives the middle of the samples. */
export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}

/** Gives p50 and p95 of milliseconds as text. */
export function spread(samples: readonly number[]): string {
  return `${median(samples).toFixed(1)} ms (p95 ${percentile(samples, 0.95).toFixed(1)})`;
}

/** Measures something once, and gives the figure. */
export type Measure = () => Promise<number>;

/** Makes a measure of the milliseconds that something takes. */
export function timed(work: () => Promise<unknown>): Measure {
  return async () => {
    const beganAt = performance.now();
    await work();
    return performance.now() - beganAt;
  };
}

/**
 * Takes samples of several sides in turn, so that what else the machine does falls on all of them alike. Who begins
 * changes from round to round; the rounds of the warm-up are not kept.
 */
export async function interleave<Side extends string>(
  sides: Readonly<Record<Side, Measure>>,
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
): Promise<Record<Side, number[]>> {
  const names = Object.keys(sides) as Side[];
  const samples = Object.fromEntries(names.map((name): [string, number[]] => [name, []])) as Record<Side, number[]>;
  for (let round = -warmUp; round < rounds; round += 1) {
    const first = Math.abs(round) % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      const figure = await sides[name]();
      if (round >= 0) samples[name].push(figure);
    }
  }
  return samples;
}
