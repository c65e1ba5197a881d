import type { Principal } from "./call.ts";

/** A bearer read from a request, before verification. */
export interface BearerToken {
  /** Identifier of its row, such as `key_...`. The prefix identifies the kind. */
  readonly id: string;
  readonly secret: string;
}

/** Stored data of a bearer. */
export interface Credential {
  readonly principal: Principal;
  readonly secretHash: Buffer;
  /** Whether it was revoked, directly or with its owner. */
  readonly isRevoked: boolean;
  /** Expiry of the bearer and of everything opened with it. */
  readonly expiresAt: Date | null;
  /** Time until which the bearer can open streams. They may stay open until `expiresAt`. */
  readonly opensUntil?: Date;
  /** Identifiers of owners (account, user) whose change affects the bearer. */
  readonly belongsTo: readonly string[];
}

/** A kind of bearer, contributed by a feature through `bearers`. */
export interface BearerKind {
  /** Prefix of its bearers, such as `phk_`. */
  readonly prefix: string;
  /** Parses a bearer with this prefix. Returns undefined if malformed. */
  parse(text: string): BearerToken | undefined;
  /** Reads bearers in one query. Omits unknown ids. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, Credential>>;
}
