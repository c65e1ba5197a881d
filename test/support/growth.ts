import { expect } from "vitest";

/** By how much the longer input is longer, and how much more time than that it may take: for memory, and a busy machine. */
const factor = 64;
const margin = 8;

/** Milliseconds that prove nothing: a quadratic function takes more on the longest of the inputs that are tried here. */
const untellingMs = 5;

const runs = 3;
const attempts = 4;

/**
 * Expects that a function's time grows no faster than its input: at 64 times the length, less than 512 times the time,
 * where a quadratic function takes 4,096 times. Short inputs come first, so that one that would last for hours at the
 * longest is found out before.
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
    const isFast = () => times.long < Math.max(untellingMs, times.short * factor * margin);
    for (let attempt = 0; attempt < attempts && !isFast(); attempt += 1) {
      // The shortest of all runs is the one that the machine disturbed least.
      times.short = Math.min(times.short, fastest(work, short));
      times.long = Math.min(times.long, fastest(work, long));
    }
    expect(isFast(), `${times.short} ms at ${length / factor}, ${times.long} ms at ${length}`).toBe(true);
  }
}

function fastest<Input>(work: (input: Input) => unknown, input: Input): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs && best > untellingMs / factor; run += 1) {
    const beganAt = performance.now();
    try {
      work(input);
    } catch {
      // Most of these inputs are refused: how long that takes is the question.
    }
    best = Math.min(best, performance.now() - beganAt);
  }
  return best;
}
