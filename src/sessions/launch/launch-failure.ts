import { type Failure, fail } from "../../platform/errors.ts";

/** Seconds to wait before a retry when there was no slot. */
const retryAfter = 2;

/** The failure if no worker has capacity. */
export const noCapacity = (detail: string): Failure => fail("capacity-unavailable", {}, { detail, retryAfter });

/** The failure if no worker has the runtime. */
export const notIntegrated = (runtime: string): Failure =>
  fail(
    "driver-not-integrated",
    { runtime },
    { detail: `no worker can launch ${runtime}: choose another runtime, or ask the operator to install it` },
  );
