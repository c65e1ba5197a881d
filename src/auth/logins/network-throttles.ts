import type { CountedAttempt, Throttles } from "../../identity/throttle.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import { isKnownNetwork } from "./store.ts";

/** Milliseconds for which a network counts as known after a login. */
const knownFor = 30 * 86_400_000;

/** An attempt for an e-mail address, which does not necessarily belong to a user. */
export interface AddressAttempt {
  /** Kind of attempt, such as `password`. */
  readonly kind: string;
  /** Canonical address. */
  readonly email: string;
  readonly userId: string | undefined;
  readonly network: string;
  /** Attempts per hour that all networks share. */
  readonly shared: number;
  /**
   * Additional attempts per hour for each network from which the user logged in within 30 days, counted first. Other
   * networks cannot exhaust these attempts.
   */
  readonly knownNetwork: number;
  /** Description of the attempts, for the error text. */
  readonly what: string;
}

/** Counts an attempt for an address. Throws `rate-limited` if no attempt is left. */
export type CountAttempt = (attempt: AddressAttempt) => Promise<CountedAttempt>;

/** Creates the throttle of attempts by address and network. */
export function createNetworkThrottles(
  parts: Pick<PlatformParts, "db" | "clock"> & {
    readonly throttles: Throttles;
  },
): CountAttempt {
  const { db, clock, throttles } = parts;
  return async ({ kind, email, userId, network, shared, knownNetwork, what }) => {
    const isKnown = await isKnownNetwork(db, { userId, network }, new Date(clock.now() - knownFor));
    const own = isKnown ? [{ name: `${kind} ${email} ${network}`, limit: knownNetwork }] : [];
    return throttles.take([...own, { name: `${kind} ${email}`, limit: shared }], what);
  };
}
