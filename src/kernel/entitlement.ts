/** A limit that the operator changed for an account, until `expiresAt`. */
export interface Override {
  /** Name of a rate-limit bucket or of a quota, such as `global` or `session_minutes`. */
  readonly limit: string;
  /** New limit; for a bucket, its capacity. */
  readonly value: number;
  /** For a bucket, tokens refilled per minute. */
  readonly refillPerMinute?: number;
  /** ISO 8601. */
  readonly expiresAt: string;
  readonly reason?: string;
}

/** Tier and overrides of an account, from which src/limits derives its limits. */
export interface Entitlement {
  readonly tier: string;
  /** Includes expired overrides; expiry is checked on use. */
  readonly overrides: readonly Override[];
}
