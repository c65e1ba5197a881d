import { lockAccount } from "../accounts/store.ts";
import { authorizeGrant, isAbove, membershipAs } from "../identity/api-keys/grants.ts";
import type { MemberKeys } from "../identity/api-keys/member-keys.ts";
import type { LoginPrincipal, Principal } from "../kernel/call.ts";
import type { Role } from "../kernel/role.ts";
import type { Mailer } from "../mail/mailer.ts";
import { fail } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { notifyActivity } from "./activity.ts";
import { type InviteRole, revokeInvitesBy } from "./invite-store.ts";
import { countOwners, deleteMember, findMember, type MemberRow, updateRole } from "./member-store.ts";

/** Roles to which a member of each role may not invite. */
const invitedAbove: Readonly<Record<Role, readonly InviteRole[]>> = { owner: [], admin: [], member: ["admin"] };

export interface Members {
  /**
   * Changes the role of a member. Without `role`, only checks the caller's rights. Throws `not-found`, `forbidden`, or
   * `conflict` for the last owner.
   */
  setRole(tx: Tx, by: Principal, id: string, role: Role | undefined): Promise<{ member: MemberRow; before: Role }>;
  /**
   * Removes a member. Transfers the member's keys to the caller if `keepKeys` is true and the member is not the caller;
   * otherwise revokes the keys. Throws like `setRole`.
   */
  remove(tx: Tx, by: Principal, id: string, keepKeys: boolean): Promise<Departure>;
  /**
   * Removes the user of a login from its account, and revokes the user's keys. Throws `conflict` for the last owner, or
   * `revoked-key` if the user is no longer a member.
   */
  leave(tx: Tx, by: LoginPrincipal): Promise<Departure>;
}

/** A former member, and the identifiers of the member's keys that were revoked or transferred. */
export interface Departure {
  readonly member: MemberRow;
  readonly keys: readonly string[];
}

export interface MembersParts extends Pick<PlatformParts, "bus" | "clock"> {
  readonly mailer: Mailer;
  readonly memberKeys: MemberKeys;
}

const noMember = () => fail("not-found", {}, { detail: "no member has this id" });
const forbidden = (detail: string) => fail("forbidden", {}, { detail });

export function createMembers({ bus, clock, mailer, memberKeys }: MembersParts): Members {
  /**
   * Locks the account, so that two owners who leave concurrently cannot both leave. Returns a member that the caller
   * may change. Throws `not-found` or `forbidden`.
   */
  async function lock(tx: Tx, by: Principal, id: string): Promise<MemberRow> {
    await lockAccount(tx, by.accountId);
    const [member, { role }] = [await findMember(tx, by.accountId, { id }), await authorizeGrant(tx, by, {})];
    if (!member) throw noMember();
    if (role === "member") throw forbidden("members cannot change roles or remove members");
    if (member.role === "owner" && role !== "owner") throw forbidden("only an owner can demote or remove an owner");
    return member;
  }

  async function assertOwnerStays(tx: Tx, { role, account_id: accountId }: MemberRow): Promise<void> {
    if (role !== "owner" || (await countOwners(tx, accountId)) > 1) return;
    throw fail("conflict", {}, { detail: "the last owner of an account cannot be demoted or removed" });
  }

  /** Applies a changed or lost role: revokes invites that the user may no longer send, and drops cached bearers. */
  async function settle(tx: Tx, { account_id: accountId, user_id: userId }: MemberRow, role?: Role): Promise<void> {
    const roles: readonly InviteRole[] = role ? invitedAbove[role] : ["admin", "member"];
    if (roles.length > 0) await revokeInvitesBy(tx, { accountId, userId, roles, now: new Date(clock.now()) });
    tx.afterCommit(() => bus.publish("bearer-changed", userId));
  }

  async function end(tx: Tx, member: MemberRow, by: Principal, keys: keyof MemberKeys): Promise<Departure> {
    await assertOwnerStays(tx, member);
    await deleteMember(tx, member.id);
    await settle(tx, member);
    const creator = { accountId: member.account_id, userId: member.user_id };
    const ended = { member, keys: await memberKeys[keys](tx, creator, by) };
    await notifyActivity(tx, mailer, member, member.user_id === by.userId ? "left" : "removed");
    return ended;
  }

  return {
    async setRole(tx, by, id, role) {
      const member = await lock(tx, by, id);
      if (role === undefined || role === member.role) return { member, before: member.role };
      if (isAbove(role, member.role)) await authorizeGrant(tx, by, membershipAs(role));
      if (role !== "owner") await assertOwnerStays(tx, member);
      await updateRole(tx, id, role);
      const changed = { ...member, role };
      await settle(tx, changed, role);
      return { member: changed, before: member.role };
    },
    async remove(tx, by, id, keepKeys) {
      const member = await lock(tx, by, id);
      // Members who remove themselves cannot transfer their keys to themselves.
      return end(tx, member, by, keepKeys && member.user_id !== by.userId ? "transfer" : "revoke");
    },
    async leave(tx, by) {
      const { accountId, userId } = by;
      await lockAccount(tx, accountId);
      const member = await findMember(tx, accountId, { userId });
      // A concurrent request has removed the user from the account.
      if (!member) throw fail("revoked-key", {}, { detail: "you are no longer a member of the account: log in again" });
      return end(tx, member, by, "revoke");
    },
  };
}
