import { expect } from "vitest";

/** By how much the longer input is longer, and how much more time than that it may take for what a busy machine does. */
const FACTOR = 8;
const MARGIN = 3;

/** Below this a quadratic function would not be: on the lengths that are tried here it takes ten times as long. */
const UNTELLING_MS = 5;

const RUNS = 3;
const ATTEMPTS = 4;

/**
 * Expects that a function's time grows no faster than its input: at eight times the length, less than 24 times the time.
 * It begins with short inputs, so that one that would last for hours at the longest is found out before.
 */
export function expectLinear<Input>(
  work: (input: Input) => unknown,
  make: (length: number) => Input,
  longest: number,
): void {
  for (let length = longest / FACTOR ** 3; length < longest; length *= FACTOR) {
    expectGrowth(work, { short: make(length), long: make(length * FACTOR) }, length);
  }
}

function expectGrowth<Input>(
  work: (input: Input) => unknown,
  { short, long }: Record<"short" | "long", Input>,
  length: number,
): void {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // The shortest of all runs is the one that the machine disturbed least.
    least = Math.min(least, fastest(work, short));
    most = Math.min(most, fastest(work, long));
    if (most < Math.max(UNTELLING_MS, least * FACTOR * MARGIN)) return;
  }
  expect(most / least, `${least} ms at ${length}, ${most} ms at ${length * FACTOR}`).toBeLessThan(FACTOR * MARGIN);
}

function fastest<Input>(work: (input: Input) => unknown, input: Input): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS; run += 1) {
    const beganAt = performance.now();
    try {
      work(input);
    } catch {
      // Most of these inputs are refused: how long that takes is the question.
    }
    best = Math.min(best, performance.now() - beganAt);
    if (best < UNTELLING_MS) break;
  }
  return best;
}
