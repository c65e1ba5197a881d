import { findRole } from "../../accounts/memberships.ts";
import type { Principal } from "../../kernel/call.ts";
import type { Role } from "../../kernel/role.ts";
import { fail } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { areWithin } from "./address-list.ts";
import { scopesOfRole } from "./scopes.ts";
import { shareKey } from "./store.ts";

/** What a caller gives to others. What is left out is as the caller has it. */
export interface Grant {
  readonly scopes?: Iterable<string>;
  /** Null: without end. */
  readonly expiresAt?: Date | null;
  /** Empty: good from everywhere. */
  readonly addresses?: readonly string[];
  readonly role?: Role;
}

/** What a caller may grant at most, and what its grants record of it. */
export interface Grantor extends Required<Grant> {
  readonly scopes: readonly string[];
  /** The user that it is, or who made the key; null where the operator made that. */
  readonly userId: string | null;
  /** The key that it is, if it is one. */
  readonly keyId: string | null;
}

const ranks: Readonly<Record<Role, number>> = { member: 0, admin: 1, owner: 2 };

/** Says whether a role is above another. */
export const isAbove = (role: Role, other: Role): boolean => ranks[role] > ranks[other];

/** Membership in a role: all scopes of that role, from everywhere. */
export const membershipAs = (role: Role): Grant => ({ role, scopes: scopesOfRole(role), addresses: [] });

const noMember = () =>
  fail("revoked-key", {}, { detail: "the caller is no member of the account any more: ask its owner for an invite" });

const forbidden = (detail: string) => fail("forbidden", {}, { detail });

/** Reads what a caller may grant by now, whatever its gateway knew. A key that was revoked, or whose maker left, is `revoked-key`. */
async function findGrantor(tx: Tx, principal: Principal): Promise<Grantor> {
  const { accountId } = principal;
  const key = principal.kind === "key" ? await shareKey(tx, principal.keyId, accountId) : undefined;
  if (principal.kind === "key" && (!key || key.revoked_at))
    throw fail("revoked-key", {}, { detail: "the key was revoked: use another one" });
  const userId = key ? key.created_by : (principal.userId ?? null);
  const role = userId === null ? "admin" : await findRole(tx, { accountId, userId });
  if (!role) throw noMember();
  const ofRole = scopesOfRole(role);
  const own = [...principal.scopes].filter((scope) => ofRole.has(scope) && (key?.scopes.includes(scope) ?? true));
  const tokenExpiresAt = principal.kind === "key" ? principal.tokenExpiresAt : undefined;
  return {
    scopes: own,
    expiresAt: tokenExpiresAt ?? key?.expires_at ?? null,
    addresses: key?.addresses ?? [],
    // A key makes no owner.
    role: key && role === "owner" ? "admin" : role,
    userId,
    keyId: key?.id ?? null,
  };
}

/** Throws `forbidden` for a grant that reaches beyond the grantor. */
function assertWithin(grantor: Grantor, { scopes = [], expiresAt, addresses, role }: Grant): void {
  if (role && isAbove(role, grantor.role)) throw forbidden(`the role ${role} is above yours, which is ${grantor.role}`);
  const missing = [...scopes].find((scope) => !grantor.scopes.includes(scope));
  if (missing !== undefined) throw forbidden(`this would grant the scope ${missing}, which is none of yours`);
  const { expiresAt: end } = grantor;
  if (end && expiresAt !== undefined && (!expiresAt || expiresAt > end))
    throw forbidden(`your own key or token ends at ${end.toISOString()}, and what it makes must end by then`);
  if (addresses && !areWithin(addresses, grantor.addresses))
    throw forbidden("your own key is good from some addresses alone, and what it makes would be good from others");
}

/**
 * Judges what a method with the option `grants` is about to give: throws `forbidden` where that reaches beyond the caller's
 * own scopes, end, addresses or role. A grant may depend on what the caller has. Returns the grantor, for the record.
 */
export async function judgeGrant(
  tx: Tx,
  principal: Principal,
  grant: Grant | ((grantor: Grantor) => Grant),
): Promise<Grantor> {
  const grantor = await findGrantor(tx, principal);
  assertWithin(grantor, typeof grant === "function" ? grant(grantor) : grant);
  return grantor;
}
