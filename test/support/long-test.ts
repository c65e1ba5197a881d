import { describe, inject, test } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    /** Whether files run their long tests too. */
    readonly runsLongTests?: boolean;
  }
}

const isLong = inject("runsLongTests") === true;

const nothing = (): void => undefined;

/** A test that only `npm run test-long` runs, in a file of which `npm test` runs other tests. */
export const longTest: (name: string, run: () => Promise<unknown>, timeout?: number) => void = isLong ? test : nothing;

/** Tests that only `npm run test-long` runs, in a file of which `npm test` runs other tests. */
export const longDescribe: (name: string, define: () => void) => void = isLong ? describe : nothing;

/** Rows of a table: the first ones for each run, the others only for `npm run test-long`. */
export const withLong = <Row>(rows: readonly Row[], longRows: readonly Row[]): readonly Row[] =>
  isLong ? [...rows, ...longRows] : rows;
