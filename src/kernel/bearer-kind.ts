import type { Principal } from "./call.ts";

/** A bearer as it was read from a request, before anybody knows whether it is good. */
export interface BearerToken {
  /** Identifier of its row, such as `key_...`: prefixes tell the rows of all kinds apart. */
  readonly id: string;
  readonly secret: string;
}

/** What the row of a bearer says. */
export interface Credential {
  readonly principal: Principal;
  readonly secretHash: Buffer;
  /** It was ended by hand, or with what it belongs to. */
  readonly isRevoked: boolean;
  /** When it ends, and all that was opened with it. */
  readonly expiresAt: Date | null;
  /** Until when something can be opened with it, which may then outlast that. */
  readonly opensUntil?: Date;
  /** Identifiers of what ends or changes it besides its own row: its account, its user. */
  readonly belongsTo: readonly string[];
}

/** One way to show who one is. The feature that brings it names it in its `bearers`. */
export interface BearerKind {
  /** With what its bearers begin, such as `phk_`. */
  readonly prefix: string;
  /** Reads a bearer that begins so; undefined when it is malformed. */
  parse(text: string): BearerToken | undefined;
  /** Reads the rows of bearers, in one query; what is not there is left out. */
  find(ids: readonly string[]): Promise<ReadonlyMap<string, Credential>>;
}
