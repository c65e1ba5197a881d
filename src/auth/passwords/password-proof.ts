import type { UserRow } from "../../accounts/users.ts";
import type { Throttles } from "../../identity/throttle.ts";
import { fail } from "../../platform/errors.ts";
import type { Client } from "../logins/client.ts";
import type { CountAttempt } from "../logins/network-throttles.ts";
import type { Passwords } from "./passwords.ts";

const attempts = { shared: 20, knownNetwork: 10, what: "attempts at the password of this address" };

/** Identical for known and unknown addresses, so that the text does not disclose whether an address has a user. */
const wrongPassword = "no user has this address and this password: try again, or reset the password";

/** A password to verify, and the client that sent it. */
export interface PasswordClaim {
  /** Undefined for an unknown address: the check then takes as long, and fails. */
  readonly user: Pick<UserRow, "id" | "password_hash"> | undefined;
  /** Canonical address. */
  readonly email: string;
  readonly password: string;
  readonly client: Client;
}

/** Verifies a password. Throws `invalid-credentials`, or `rate-limited` after too many attempts. */
export type ProvePassword = (claim: PasswordClaim) => Promise<void>;

/** Creates the password check. All methods that need a password share its attempt counters. */
export function createPasswordProof(parts: {
  readonly throttles: Throttles;
  readonly countAttempt: CountAttempt;
  readonly passwords: Passwords;
}): ProvePassword {
  const { throttles, countAttempt, passwords } = parts;
  return async ({ user, email, password, client: { address, network } }) => {
    const counted = await countAttempt({ kind: "password", email, userId: user?.id, network, ...attempts });
    if (!(await passwords.verify(user?.password_hash, password, address)))
      throw fail("invalid-credentials", {}, { detail: wrongPassword });
    await throttles.refund(counted);
  };
}
