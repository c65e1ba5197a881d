import { findRole } from "../../accounts/memberships.ts";
import type { Principal } from "../../kernel/call.ts";
import type { Role } from "../../kernel/role.ts";
import { fail } from "../../platform/errors.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { areWithin } from "./address-list.ts";
import { scopesOfRole } from "./scopes.ts";
import { lockKeyShared } from "./store.ts";

/** Rights that a caller grants to others. Omitted rights are not checked. */
export interface GrantedRights {
  readonly scopes?: Iterable<string>;
  /** Null: never expires. */
  readonly expiresAt?: Date | null;
  /** Empty: usable from any address. */
  readonly addresses?: readonly string[];
  readonly role?: Role;
}

/** The rights that a caller may grant at most, and the identity recorded with the grant. */
export interface Grantor extends Required<GrantedRights> {
  readonly scopes: readonly string[];
  /** The user, or the creator of the key; null for a key created by the operator. */
  readonly userId: string | null;
  /** The calling key, if any. */
  readonly keyId: string | null;
}

const ranks: Readonly<Record<string, number>> = { member: 0, admin: 1, owner: 2 } satisfies Record<Role, number>;

/**
 * Returns whether a role is above another. An unknown role, of a later release, is above all, and cannot be granted.
 */
export const isAbove = (role: string, other: string): boolean => (ranks[role] ?? 3) > (ranks[other] ?? 0);

/** Returns the rights of a membership: the role and all its scopes, from any address. */
export const membershipAs = (role: Role): GrantedRights => ({ role, scopes: scopesOfRole(role), addresses: [] });

const noMember = () =>
  fail("revoked-key", {}, { detail: "the caller is no longer a member of the account: ask its owner for an invite" });

const forbidden = (detail: string) => fail("forbidden", {}, { detail });

/**
 * Reads the caller's current rights from the database. Throws `revoked-key` if the key was revoked or the user is no
 * longer a member.
 */
async function findGrantor(tx: Tx, principal: Principal): Promise<Grantor> {
  const { accountId } = principal;
  const key = principal.kind === "key" ? await lockKeyShared(tx, principal.keyId, accountId) : undefined;
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
    // A key cannot create owners.
    role: key && role === "owner" ? "admin" : role,
    userId,
    keyId: key?.id ?? null,
  };
}

/** Throws `forbidden` if a grant exceeds the rights of the grantor. */
function assertWithin(grantor: Grantor, { scopes = [], expiresAt, addresses, role }: GrantedRights): void {
  if (role && isAbove(role, grantor.role)) throw forbidden(`the role ${role} is above yours, which is ${grantor.role}`);
  const missing = [...scopes].find((scope) => !grantor.scopes.includes(scope));
  if (missing !== undefined) throw forbidden(`this would grant the scope ${missing}, which you do not have`);
  const { expiresAt: end } = grantor;
  if (end && expiresAt !== undefined && (!expiresAt || expiresAt > end))
    throw forbidden(
      `your own key or token expires at ${end.toISOString()}, and anything it creates must expire by then`,
    );
  if (addresses && !areWithin(addresses, grantor.addresses))
    throw forbidden("your own key allows only some addresses, and the grant must not allow others");
}

/**
 * Checks that a caller may grant rights, and returns the grantor to record. Every method with the proto option `grants`
 * calls this function. Throws `forbidden` if the rights exceed the caller's scopes, expiry, addresses or role, and
 * `revoked-key` if the caller has lost all rights. If `grant` is a function, `grant` computes the rights from those of
 * the caller.
 */
export async function authorizeGrant(
  tx: Tx,
  principal: Principal,
  grant: GrantedRights | ((grantor: Grantor) => GrantedRights),
): Promise<Grantor> {
  const grantor = await findGrantor(tx, principal);
  assertWithin(grantor, typeof grant === "function" ? grant(grantor) : grant);
  return grantor;
}
