import type { Principal } from "../call.ts";
import { fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { areWithin } from "./address-list.ts";
import { lockKey } from "./store.ts";

/** What a key may do at most, until when and from where. */
export interface KeyBounds {
  readonly scopes: readonly string[];
  /** Null: without end. */
  readonly expiresAt: Date | null;
  /** Empty: from everywhere. */
  readonly addresses: readonly string[];
}

/** Who makes a key: its bounds are those of what it makes. */
export interface KeyMaker extends KeyBounds {
  /** The user that it is, or whose key it is. */
  readonly createdBy: string | null;
  /** The key that it is, if it is one. */
  readonly createdByKey: string | null;
}

/** Reads what bounds a caller, as it is now. */
export async function findMaker(tx: Tx, principal: Principal): Promise<KeyMaker> {
  if (principal.kind === "login") {
    return {
      scopes: [...principal.scopes],
      expiresAt: null,
      addresses: [],
      createdBy: principal.userId,
      createdByKey: null,
    };
  }
  const row = await lockKey(tx, principal.keyId, principal.accountId);
  if (!row || row.revoked_at) throw fail("revoked-key");
  const scopes = row.scopes.filter((scope) => principal.scopes.has(scope));
  return {
    scopes,
    expiresAt: principal.tokenExpiresAt ?? row.expires_at,
    addresses: row.addresses,
    createdBy: row.created_by,
    createdByKey: row.id,
  };
}

/** Throws `forbidden` where a key would reach beyond who makes it. */
export function assertWithin(key: KeyBounds, maker: KeyBounds): void {
  const missing = key.scopes.find((scope) => !maker.scopes.includes(scope));
  if (missing !== undefined) throw forbidden(`the scope ${missing} is none of yours`);
  const end = maker.expiresAt;
  if (end && (!key.expiresAt || key.expiresAt > end))
    throw forbidden(`your own key ends at ${end.toISOString()}, and so must this one, by then`);
  if (!areWithin(key.addresses, maker.addresses))
    throw forbidden("your own key is good from some addresses alone, and this one must be from no others");
}

const forbidden = (detail: string) => fail("forbidden", {}, { detail });
