import type { Principal } from "./call.ts";

/** A bearer read from a request, before verification. */
export interface BearerToken {
  /** Identifier of the bearer's row, such as `key_...`. */
  readonly id: string;
  readonly secret: string;
}

/** Stored data of a bearer. */
export interface Credential {
  readonly principal: Principal;
  readonly secretHash: Buffer;
  /** Whether the bearer or its owner was revoked. */
  readonly isRevoked: boolean;
  /** Expiry of the bearer and of the streams opened with it. */
  readonly expiresAt: Date | null;
  /** Time until which the bearer can open streams. Open streams may continue until `expiresAt`. */
  readonly opensUntil?: Date;
  /**
   * Identifiers, such as those of the account and user. After a change to any of these, the credential is read again.
   */
  readonly belongsTo: readonly string[];
}

/** A kind of bearer, contributed by a feature through `bearers`. */
export interface BearerKind {
  /** Prefix of bearers of this kind, such as `phk_`. */
  readonly prefix: string;
  /** Parses a bearer. Returns undefined if malformed. */
  parse(text: string): BearerToken | undefined;
  /** Reads the credentials of bearers by id, in one query. Omits unknown ids. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, Credential>>;
}

/** A bearer read from a request, with the kind that finds its credential. */
export interface Bearer extends BearerToken {
  readonly kind: BearerKind;
}
