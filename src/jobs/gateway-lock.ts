import { randomInt } from "node:crypto";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import { createAdvisoryLock } from "../platform/postgres/advisory-lock.ts";
import type { DatabaseTarget } from "../platform/postgres/database-target.ts";

/** Lower numbers are reserved for locks with a fixed meaning. */
const firstNumber = 1 << 16;

/** Lock that marks a gateway as running. Once PostgreSQL releases it, other gateways take over the gateway's jobs. */
export interface GatewayLock extends Part {
  /**
   * Returns the number of the lock, or 0 if not held. Without the lock, other gateways take over queues only when the
   * leases expire.
   */
  gateway(): number;
}

/** Creates the lock with a random number. */
export function createGatewayLock(target: DatabaseTarget, log: Log): GatewayLock {
  const number = randomInt(firstNumber, 2 ** 31);
  const lock = createAdvisoryLock({ target, log, number, onLost: () => undefined });
  return {
    gateway: () => (lock.isHeld() ? number : 0),
    start: () => lock.take(),
    stop: () => lock.release(),
  };
}
