import type { Entitlement, Override } from "../kernel/entitlement.ts";
import type { Clock } from "../platform/clock.ts";
import { type BucketSize, isBucketName, type Tier, tiers } from "./tiers.ts";

/** The limits of accounts as they are at this moment: those of their tier, with the operator's overrides. */
export interface Limits {
  of(account: Entitlement): Tier;
  /** Size of a bucket. Throws for one that does not exist: the contract's proto named it wrongly. */
  bucket(account: Entitlement, bucket: string): BucketSize;
  /** The overrides that have not expired. */
  overrides(account: Entitlement): readonly Override[];
}

/** The numbers of a tier that can be overridden besides its buckets, by the name that the contract has for them. */
const numbers = {
  concurrent_sessions: "concurrentSessions",
  session_minutes: "monthlySessionMinutes",
  profiles: "profiles",
  profile_storage_bytes: "profileStorageBytes",
  api_keys: "apiKeys",
  longest_session_seconds: "longestSessionSeconds",
} as const satisfies Record<string, keyof Tier>;

/** The names of the limits that are plain numbers. */
export const numberLimits: readonly string[] = Object.keys(numbers);

function isNumber(limit: string): limit is keyof typeof numbers {
  return Object.hasOwn(numbers, limit);
}

/** A tier in which one number or bucket is another. One of a limit that a later release knows changes nothing. */
function overridden(tier: Tier, { limit, value, refillPerMinute = 0 }: Override): Tier {
  if (isNumber(limit)) return { ...tier, [numbers[limit]]: value };
  if (!isBucketName(limit)) return tier;
  return { ...tier, buckets: { ...tier.buckets, [limit]: { capacity: value, refillPerSecond: refillPerMinute / 60 } } };
}

/** Makes what tells the limits of accounts. */
export function createLimits(clock: Clock): Limits {
  const inForce = ({ overrides }: Entitlement): readonly Override[] =>
    overrides.length === 0 ? overrides : overrides.filter(({ expiresAt }) => Date.parse(expiresAt) > clock.now());

  const of = (account: Entitlement): Tier => inForce(account).reduce(overridden, tiers.get(account.tier));

  return {
    of,
    overrides: inForce,
    bucket(account, bucket) {
      if (!isBucketName(bucket)) throw new Error(`there is no bucket ${bucket}`);
      return of(account).buckets[bucket];
    },
  };
}
