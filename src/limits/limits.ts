import type { Entitlement, Override } from "../kernel/entitlement.ts";
import type { Clock } from "../platform/clock.ts";
import { type BucketSize, isBucketName, type Tier, tiers } from "./tiers.ts";

/** Current limits of accounts: those of the tier with the operator's overrides. */
export interface Limits {
  of(account: Entitlement): Tier;
  /** Returns the size of a bucket. Throws for an unknown bucket, which only an error in a proto can name. */
  bucket(account: Entitlement, bucket: string): BucketSize;
  /** Returns the overrides that have not expired. */
  overrides(account: Entitlement): readonly Override[];
}

/** Numeric limits that can be overridden, by their public name. */
const numbers = {
  concurrent_sessions: "concurrentSessions",
  session_minutes: "monthlySessionMinutes",
  profiles: "profiles",
  profile_storage_bytes: "profileStorageBytes",
  api_keys: "apiKeys",
  longest_session_seconds: "longestSessionSeconds",
} as const satisfies Record<string, keyof Tier>;

/** Public names of numeric limits. */
export const numberLimits: readonly string[] = Object.keys(numbers);

function isNumber(limit: string): limit is keyof typeof numbers {
  return Object.hasOwn(numbers, limit);
}

/** Returns a tier with a limit replaced. Ignores limits that only a later release knows. */
export function withLimit(
  tier: Tier,
  { limit, value, refillPerMinute = 0 }: Pick<Override, "limit" | "value" | "refillPerMinute">,
): Tier {
  if (isNumber(limit)) return { ...tier, [numbers[limit]]: value };
  if (!isBucketName(limit)) return tier;
  return { ...tier, buckets: { ...tier.buckets, [limit]: { capacity: value, refillPerSecond: refillPerMinute / 60 } } };
}

/** Creates the limits of accounts. `changed` are tiers with limits that the operator has replaced. */
export function createLimits(clock: Clock, changed: ReadonlyMap<string, Tier> = new Map()): Limits {
  const find = (name: string): Tier | undefined => changed.get(name) ?? tiers.find(name);

  const inForce = ({ overrides }: Entitlement): readonly Override[] =>
    overrides.length === 0 ? overrides : overrides.filter(({ expiresAt }) => Date.parse(expiresAt) > clock.now());

  // A tier of a later release, unknown to this release, has the limits of the free tier.
  const of = (account: Entitlement): Tier =>
    inForce(account).reduce(withLimit, find(account.tier) ?? find("free") ?? tiers.get("free"));

  return {
    of,
    overrides: inForce,
    bucket(account, bucket) {
      if (!isBucketName(bucket)) throw new Error(`unknown bucket ${bucket}: expected a bucket of src/limits/tiers.ts`);
      return of(account).buckets[bucket];
    },
  };
}
