/** A limit that the operator has arranged for an account in place of its tier's, until it expires. */
export interface Override {
  /** Name of a rate-limit bucket or of a quota, such as `global` or `session_minutes`. */
  readonly limit: string;
  /** How much there is; of a bucket its capacity. */
  readonly value: number;
  /** Of a bucket, how many tokens come back a minute. */
  readonly refillPerMinute?: number;
  /** ISO 8601. */
  readonly expiresAt: string;
  readonly reason?: string;
}

/** What decides what an account may do, as its row says it. src/limits makes numbers of it. */
export interface Entitlement {
  readonly tier: string;
  /** Those that have expired included: their time is looked at when they are used. */
  readonly overrides: readonly Override[];
}
