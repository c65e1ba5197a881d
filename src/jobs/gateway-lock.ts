import { randomInt } from "node:crypto";
import type { Part } from "../platform/lifetime.ts";
import type { Log } from "../platform/log.ts";
import type { DatabaseTarget } from "../platform/postgres/database.ts";
import { createLoneLock } from "../platform/postgres/lone-lock.ts";

/** Numbers below belong to locks with a fixed meaning. */
const firstNumber = 1 << 16;

/** A lock that marks a gateway as running: other gateways take over its jobs as soon as PostgreSQL has released the lock. */
export interface GatewayLock extends Part {
  /** Returns the number of the lock, or 0 while the lock is not held: then jobs wait for the end of their leases. */
  gateway(): number;
}

/** Creates the lock under a random number. */
export function createGatewayLock(target: DatabaseTarget, log: Log): GatewayLock {
  const number = randomInt(firstNumber, 2 ** 31);
  const lock = createLoneLock({ target, log, number, onLost: () => undefined });
  return {
    gateway: () => (lock.isHeld() ? number : 0),
    start: () => lock.take(),
    stop: () => lock.release(),
  };
}
