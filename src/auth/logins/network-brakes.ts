import type { Brakes, CountedTry } from "../../identity/throttle.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { isKnownNetwork } from "./store.ts";

/** Milliseconds for which a network is known after a login. */
const knownFor = 30 * 86_400_000;

/** Something that can be tried at an address, whether it has a user or not. */
export interface AddressTry {
  /** What is tried: `password`. */
  readonly kind: string;
  /** The canonical address. */
  readonly email: string;
  readonly userId: string | undefined;
  readonly network: string;
  /** Tries an hour of all strangers together. */
  readonly strangers: number;
  /** More of them, for each network from which the user has logged in within 30 days: strangers cannot use them up. */
  readonly knownNetwork: number;
  /** What is told to the client whose tries are used up. */
  readonly what: string;
}

/** Counts a try at an address; throws `rate-limited` when none is left. */
export type CountTry = (tried: AddressTry) => Promise<CountedTry>;

/** Makes what counts the tries at addresses. */
export function createNetworkBrakes(parts: {
  readonly db: Database;
  readonly clock: Clock;
  readonly brakes: Brakes;
}): CountTry {
  const { db, clock, brakes } = parts;
  return async ({ kind, email, userId, network, strangers, knownNetwork, what }) => {
    const isKnown = await isKnownNetwork(db, { userId, network }, new Date(clock.now() - knownFor));
    const own = isKnown ? [{ name: `${kind} ${email} ${network}`, limit: knownNetwork }] : [];
    return brakes.take([...own, { name: `${kind} ${email}`, limit: strangers }], what);
  };
}
