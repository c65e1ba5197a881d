import { type Failure, fail } from "../../platform/errors.ts";

/** Seconds that a client should wait when there was no slot. */
const retryAfter = 2;

/** What is answered when no worker can take a session now. */
export const noCapacity = (detail: string): Failure => fail("capacity-unavailable", {}, { detail, retryAfter });

/** What is answered when no worker has the runtime. */
export const notIntegrated = (runtime: string): Failure =>
  fail("driver-not-integrated", { runtime }, { detail: `no worker can launch ${runtime}` });
