import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { toRole } from "../accounts/role-message.ts";
import {
  type CreateTeamInviteRequest,
  type ListTeamInvitesRequest,
  ListTeamInvitesResponseSchema,
  type ListTeamMembersRequest,
  ListTeamMembersResponseSchema,
  type TeamService,
  type UpdateTeamMemberRequest,
} from "../gen/pilothouse/v1/team_pb.ts";
import type { ApiKeys } from "../identity/api-keys/api-keys.ts";
import { createMemberKeys } from "../identity/api-keys/member-keys.ts";
import type { RevocationParts } from "../identity/api-keys/revocation.ts";
import { type Call, loginOf } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { failFields } from "../platform/errors.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { listInvites } from "./invite-store.ts";
import { createInvites, type InvitesParts } from "./invites.ts";
import { listMembers } from "./member-store.ts";
import { createMembers } from "./members.ts";
import { toInviteMessage, toInviteStatus, toMemberMessage } from "./team-messages.ts";

export interface TeamServiceParts extends InvitesParts, RevocationParts, Pick<PlatformParts, "db" | "bus"> {
  readonly apiKeys: ApiKeys;
}

const defaultPage = 20;

const [inviteId, memberId] = [idPattern("inv"), idPattern("mem")];

export function createTeamService(parts: TeamServiceParts): ServiceImplementation<typeof TeamService> {
  const { db, clock } = parts;
  const invites = createInvites(parts);
  const members = createMembers({ ...parts, memberKeys: createMemberKeys(parts) });

  function createInvite(call: Call, { email, role: wanted }: CreateTeamInviteRequest) {
    const role = toRole(wanted) === "admin" ? "admin" : "member";
    const id = call.ids.next("inv");
    return call.commit(async (tx) => {
      const row = await invites.send(tx, call.principal, { id, email, role });
      call.audit(tx, { subject: row.id, data: { email: row.email, role } });
      return toInviteMessage(row, clock.now());
    });
  }

  async function list({ principal }: Call, { limit = defaultPage, cursor, status }: ListTeamInvitesRequest) {
    const position = { before: readCursor(cursor, inviteId), limit: limit + 1, now: new Date(clock.now()) };
    const query = { accountId: principal.accountId, status: toInviteStatus(status), ...position };
    const page = cutPage(await listInvites(db, query), limit);
    const data = page.rows.map((row) => toInviteMessage(row, clock.now()));
    return create(ListTeamInvitesResponseSchema, { data, ...page.position });
  }

  async function listAllMembers({ principal }: Call, { limit = defaultPage, cursor }: ListTeamMembersRequest) {
    const query = { accountId: principal.accountId, before: readCursor(cursor, memberId), limit: limit + 1 };
    const { rows, position } = cutPage(await listMembers(db, query), limit);
    return create(ListTeamMembersResponseSchema, { data: rows.map(toMemberMessage), ...position });
  }

  function updateMember(call: Call, { id, role: wanted, updateMask }: UpdateTeamMemberRequest) {
    const isNamed = updateMask?.paths.includes("role") === true;
    const role = isNamed ? toRole(wanted) : undefined;
    if (isNamed && !role) throw failFields("validation-failed", { role: "must be owner, admin or member" });
    return db.transaction(async (tx) => {
      const { member, before } = await members.setRole(tx, call.principal, id, role);
      if (member.role === before) call.markUnchanged();
      else call.audit(tx, { subject: id, data: { user: member.user_id, before, role: member.role } });
      return toMemberMessage(member);
    });
  }

  return {
    createInvite,
    listInvites: list,
    listMembers: listAllMembers,
    updateMember,
    async revokeInvite(call, { id }) {
      await db.transaction(async (tx) => {
        const { email } = await invites.revoke(tx, call.principal, id);
        call.audit(tx, { subject: id, data: { email } });
      });
      return create(EmptySchema);
    },
    acceptInvite: (call, { token }) =>
      call.commit(async (tx) => toMemberMessage(await invites.accept(tx, call, loginOf(call).userId, token))),
    async removeMember(call, { id, keepKeys }) {
      await db.transaction(async (tx) => {
        const { member, keys } = await members.remove(tx, call.principal, id, keepKeys);
        const { user_id: user, email } = member;
        call.audit(tx, {
          subject: id,
          data: { user, email, ...(keepKeys ? { kept_keys: keys } : { revoked_keys: keys }) },
        });
      });
      return create(EmptySchema);
    },
    leave: (call) =>
      call.commit(async (tx) => {
        const { member, keys } = await members.leave(tx, loginOf(call));
        call.audit(tx, { subject: member.id, data: { user: member.user_id, revoked_keys: keys } });
        return create(EmptySchema);
      }),
  };
}
