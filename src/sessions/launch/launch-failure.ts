import { type Failure, fail } from "../../platform/errors.ts";

/** Seconds after which clients should retry. */
const retryAfter = 2;

/** The failure if no worker has a slot for the session or fetch. */
export const noCapacity = (detail: string): Failure => fail("capacity-unavailable", {}, { detail, retryAfter });

/**
 * The failure if the connection to a worker could not be opened, or broke. Differs from `capacity-unavailable`, because
 * more workers would not help.
 */
export const workerLost = (cause?: unknown): Failure => {
  const detail = "the browser's machine could not be reached, or was lost: try again in a moment";
  return fail("internal", {}, { detail, retryAfter, ...(cause !== undefined && { cause }) });
};

/** The failure if no worker has the runtime. */
export const notIntegrated = (runtime: string): Failure =>
  fail(
    "driver-not-integrated",
    { runtime },
    { detail: `no worker can launch ${runtime}: choose another runtime, or ask the operator to install it` },
  );
