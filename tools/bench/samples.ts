/** Returns a percentile of the samples; `share` is from 0 to 1. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new Error("there are no samples");
  return value;
}

/** Returns the median of the samples. */
export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}

/** Formats p50 and p95 of milliseconds. */
export function spread(samples: readonly number[]): string {
  return `${median(samples).toFixed(1)} ms (p95 ${percentile(samples, 0.95).toFixed(1)})`;
}

/** Takes one measurement and returns its value. */
export type Measure = () => Promise<number>;

/** Creates a measure of the duration of an operation, in milliseconds. */
export function timed(work: () => Promise<unknown>): Measure {
  return async () => {
    const beganAt = performance.now();
    await work();
    return performance.now() - beganAt;
  };
}

/**
 * Takes samples of several sides in turn, so that other load affects all sides alike. The first side changes from round
 * to round. Warm-up rounds are dropped.
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
