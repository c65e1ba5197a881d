import { lockAccount } from "../accounts/store.ts";
import type { Role } from "../accounts/tables.ts";
import type { Principal } from "../call.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Bus } from "../platform/bus.ts";
import type { Clock } from "../platform/clock.ts";
import { fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { tellActivity } from "./activity.ts";
import { lapseInvites } from "./invite-store.ts";
import { countOwners, deleteMember, findMember, type MemberRow, updateRole } from "./member-store.ts";

/** The roles to which people are invited, that are above each role. */
const invitedAbove: Readonly<Record<Role, readonly Role[]>> = { owner: [], admin: [], member: ["admin"] };

/** Who belongs to an account, and how that ends. */
export interface Members {
  /** Gives a member another role. Throws `not-found`, `forbidden`, or `conflict` for the last owner. */
  setRole(tx: Tx, by: Principal, id: string, role: Role): Promise<{ member: MemberRow; before: Role }>;
  /** Removes a member. Throws the same. */
  remove(tx: Tx, by: Principal, id: string): Promise<MemberRow>;
  /** Removes the user of a login from its account. Throws `conflict` for the last owner. */
  leave(tx: Tx, by: Principal & { kind: "login" }): Promise<MemberRow>;
}

/** What a caller is in its account by now, whatever its gateway knew. A key is nobody's but the account's. */
async function roleOf(tx: Tx, principal: Principal): Promise<Role> {
  if (principal.kind === "key") return "admin";
  // One who was removed a moment ago may do nothing more.
  return (await findMember(tx, principal.accountId, principal))?.role ?? "member";
}

const noMember = () => fail("not-found", {}, { detail: "no member has this id" });
const forbidden = (detail: string) => fail("forbidden", {}, { detail });

/** Makes what changes the members of accounts. */
export function createMembers(parts: { readonly bus: Bus; readonly clock: Clock; readonly mailer: Mailer }): Members {
  const { bus, clock, mailer } = parts;

  /** Finds a member whose account is locked, so that of two owners who go at once one stays. */
  async function lock(tx: Tx, by: Principal, id: string): Promise<{ member: MemberRow; role: Role }> {
    await lockAccount(tx, by.accountId);
    const [member, role] = [await findMember(tx, by.accountId, { id }), await roleOf(tx, by)];
    if (!member) throw noMember();
    if (role === "member") throw forbidden("a member changes nobody's role, and removes nobody");
    if (member.role === "owner" && role !== "owner") throw forbidden("only an owner demotes or removes an owner");
    return { member, role };
  }

  async function assertOwnerStays(tx: Tx, { role, account_id: accountId }: MemberRow): Promise<void> {
    if (role !== "owner" || (await countOwners(tx, accountId)) > 1) return;
    throw fail("conflict", {}, { detail: "the last owner of an account stays its owner" });
  }

  /** Does what follows from a role that is lower, or gone: invites that it could not send lapse, caches forget it. */
  async function settle(tx: Tx, { account_id: accountId, user_id: userId }: MemberRow, role?: Role): Promise<void> {
    const roles: readonly Role[] = role ? invitedAbove[role] : ["admin", "member"];
    if (roles.length > 0) await lapseInvites(tx, { accountId, userId, roles, now: new Date(clock.now()) });
    tx.afterCommit(() => bus.publish("bearer-changed", userId));
  }

  async function end(tx: Tx, member: MemberRow): Promise<MemberRow> {
    await assertOwnerStays(tx, member);
    await deleteMember(tx, member.id);
    await settle(tx, member);
    await tellActivity(tx, mailer, member, "left");
    return member;
  }

  return {
    async setRole(tx, by, id, role) {
      const { member, role: own } = await lock(tx, by, id);
      if (role === "owner" && own !== "owner") throw forbidden("only an owner makes an owner");
      if (role !== "owner") await assertOwnerStays(tx, member);
      await updateRole(tx, id, role);
      const changed = { ...member, role };
      await settle(tx, changed, role);
      return { member: changed, before: member.role };
    },
    remove: async (tx, by, id) => end(tx, (await lock(tx, by, id)).member),
    async leave(tx, { accountId, userId }) {
      await lockAccount(tx, accountId);
      const member = await findMember(tx, accountId, { userId });
      if (!member) throw noMember();
      return end(tx, member);
    },
  };
}
