import { lockAccount } from "../accounts/store.ts";
import { isAbove, judgeGrant, membershipAs } from "../identity/api-keys/grants.ts";
import type { MemberKeys } from "../identity/api-keys/member-keys.ts";
import type { LoginPrincipal, Principal } from "../kernel/call.ts";
import type { Role } from "../kernel/role.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import { fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { tellActivity } from "./activity.ts";
import { type InviteRole, lapseInvites } from "./invite-store.ts";
import { countOwners, deleteMember, findMember, type MemberRow, updateRole } from "./member-store.ts";

/** The roles to which people are invited, that are above each role. */
const invitedAbove: Readonly<Record<Role, readonly InviteRole[]>> = { owner: [], admin: [], member: ["admin"] };

/** Who belongs to an account, and how that ends. */
export interface Members {
  /**
   * Gives a member another role; without one, all that changes is nothing. Throws `not-found`, `forbidden`, or `conflict`
   * for the last owner.
   */
  setRole(tx: Tx, by: Principal, id: string, role: Role | undefined): Promise<{ member: MemberRow; before: Role }>;
  /** Removes a member, whose keys are revoked, or pass to the caller. Throws the same. */
  remove(tx: Tx, by: Principal, id: string, keepKeys: boolean): Promise<Departure>;
  /** Removes the user of a login from its account, and revokes its keys. Throws `conflict` for the last owner. */
  leave(tx: Tx, by: LoginPrincipal): Promise<Departure>;
}

/** One who was a member, and the identifiers of the keys that were revoked, or kept, at the end of that. */
export interface Departure {
  readonly member: MemberRow;
  readonly keys: readonly string[];
}

export interface MembersParts {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly mailer: Mailer;
  readonly memberKeys: MemberKeys;
}

const noMember = () => fail("not-found", {}, { detail: "no member has this id" });
const forbidden = (detail: string) => fail("forbidden", {}, { detail });

/** Makes what changes the members of accounts. */
export function createMembers({ bus, clock, mailer, memberKeys }: MembersParts): Members {
  /** Finds a member whose account is locked, so that of two owners who go at once one stays. */
  async function lock(tx: Tx, by: Principal, id: string): Promise<MemberRow> {
    await lockAccount(tx, by.accountId);
    const [member, { role }] = [await findMember(tx, by.accountId, { id }), await judgeGrant(tx, by, {})];
    if (!member) throw noMember();
    if (role === "member") throw forbidden("a member changes nobody's role, and removes nobody");
    if (member.role === "owner" && role !== "owner") throw forbidden("only an owner demotes or removes an owner");
    return member;
  }

  async function assertOwnerStays(tx: Tx, { role, account_id: accountId }: MemberRow): Promise<void> {
    if (role !== "owner" || (await countOwners(tx, accountId)) > 1) return;
    throw fail("conflict", {}, { detail: "the last owner of an account stays its owner" });
  }

  /** Does what follows from a role that is lower, or gone: invites that it could not send lapse, caches forget it. */
  async function settle(tx: Tx, { account_id: accountId, user_id: userId }: MemberRow, role?: Role): Promise<void> {
    const roles: readonly InviteRole[] = role ? invitedAbove[role] : ["admin", "member"];
    if (roles.length > 0) await lapseInvites(tx, { accountId, userId, roles, now: new Date(clock.now()) });
    tx.afterCommit(() => bus.publish("bearer-changed", userId));
  }

  async function end(tx: Tx, member: MemberRow, by: Principal, keys: keyof MemberKeys): Promise<Departure> {
    await assertOwnerStays(tx, member);
    await deleteMember(tx, member.id);
    await settle(tx, member);
    const maker = { accountId: member.account_id, userId: member.user_id };
    const ended = { member, keys: await memberKeys[keys](tx, maker, by) };
    await tellActivity(tx, mailer, member, "left");
    return ended;
  }

  return {
    async setRole(tx, by, id, role) {
      const member = await lock(tx, by, id);
      if (role === undefined || role === member.role) return { member, before: member.role };
      if (isAbove(role, member.role)) await judgeGrant(tx, by, membershipAs(role));
      if (role !== "owner") await assertOwnerStays(tx, member);
      await updateRole(tx, id, role);
      const changed = { ...member, role };
      await settle(tx, changed, role);
      return { member: changed, before: member.role };
    },
    async remove(tx, by, id, keepKeys) {
      const member = await lock(tx, by, id);
      // Whoever removes themselves leaves: there is nobody to keep the keys.
      return end(tx, member, by, keepKeys && member.user_id !== by.userId ? "pass" : "revoke");
    },
    async leave(tx, by) {
      const { accountId, userId } = by;
      await lockAccount(tx, accountId);
      const member = await findMember(tx, accountId, { userId });
      // Another request of the same login has left a moment ago.
      if (!member) throw fail("revoked-key", {}, { detail: "the login has left the account already: log in again" });
      return end(tx, member, by, "revoke");
    },
  };
}
