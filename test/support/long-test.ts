import { describe, inject, test } from "vitest";
import type { TransportName } from "./transport-calls.ts";

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

/**
 * Transports for tests of rules that are the same on all: both implementations of the protocols. The others share the
 * code of Connect, which test/gateway tests.
 */
export const sampledTransports = withLong<TransportName>(["REST", "gRPC on GRPC_PORT"], ["Connect", "gRPC"]);
