import { expect } from "vitest";

/** Ratio of the input lengths, and the tolerance of the time ratio for memory effects and a busy machine. */
const factor = 64;
const margin = 8;

/** Shorter times are inconclusive. A quadratic function takes longer on the longest inputs tried here. */
const inconclusiveMs = 5;

const runs = 3;
const attempts = 4;

/**
 * Expects the time of a function to grow at most linearly with its input. Input of 64 times the length must take less
 * than 512 times as long, where a quadratic function takes 4,096 times. Short inputs run first, so that a slow function
 * fails before the longest ones.
 */
export function expectLinear<Input>(
  work: (input: Input) => unknown,
  make: (length: number) => Input,
  longest: number,
): void {
  for (const length of [longest / 8, longest]) {
    const short = make(length / factor);
    const long = make(length);
    const times = { short: Number.POSITIVE_INFINITY, long: Number.POSITIVE_INFINITY };
    const isFast = () => times.long < Math.max(inconclusiveMs, times.short * factor * margin);
    for (let attempt = 0; attempt < attempts && !isFast(); attempt += 1) {
      // The fastest of all runs was disturbed least by other processes.
      times.short = Math.min(times.short, fastest(work, short));
      times.long = Math.min(times.long, fastest(work, long));
    }
    expect(isFast(), `${times.short} ms at ${length / factor}, ${times.long} ms at ${length}`).toBe(true);
  }
}

function fastest<Input>(work: (input: Input) => unknown, input: Input): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs && best > inconclusiveMs / factor; run += 1) {
    const beganAt = performance.now();
    try {
      work(input);
    } catch {
      // Most inputs are rejected. Only the duration matters.
    }
    best = Math.min(best, performance.now() - beganAt);
  }
  return best;
}
