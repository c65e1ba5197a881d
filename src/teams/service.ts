import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { toRole } from "../accounts/role-message.ts";
import { type Call, loginOf } from "../call.ts";
import {
  type CreateTeamInviteRequest,
  type ListTeamInvitesRequest,
  ListTeamInvitesResponseSchema,
  type ListTeamMembersRequest,
  ListTeamMembersResponseSchema,
  type TeamService,
  type UpdateTeamMemberRequest,
} from "../gen/pilothouse/v1/team_pb.ts";
import type { Bus } from "../platform/bus.ts";
import { failFields } from "../platform/errors.ts";
import { idPattern } from "../platform/ids.ts";
import { cutPage, readCursor } from "../platform/list-page.ts";
import type { Database } from "../platform/postgres/database.ts";
import type { ServiceImplementation } from "../registry.ts";
import { listInvites } from "./invite-store.ts";
import { createInvites, type InvitesParts } from "./invites.ts";
import { listMembers } from "./member-store.ts";
import { createMembers } from "./members.ts";
import { toInviteMessage, toInviteStatus, toMemberMessage } from "./team-messages.ts";

export interface TeamServiceParts extends InvitesParts {
  readonly db: Database;
  readonly bus: Bus;
}

const defaultPage = 20;

const [inviteId, memberId] = [idPattern("inv"), idPattern("mem")];

/** Makes the implementation of TeamService. */
export function createTeamService(parts: TeamServiceParts): ServiceImplementation<typeof TeamService> {
  const { db, clock } = parts;
  const invites = createInvites(parts);
  const members = createMembers(parts);

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

  function updateMember(call: Call, { id, role: wanted }: UpdateTeamMemberRequest) {
    const role = toRole(wanted);
    if (!role) throw failFields("validation-failed", { role: "is owner, admin or member" });
    return db.transaction(async (tx) => {
      const { member, before } = await members.setRole(tx, call.principal, id, role);
      call.audit(tx, { subject: id, data: { user: member.user_id, before, role } });
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
      call.commit(async (tx) => toMemberMessage(await invites.accept(tx, call, loginOf(call), token))),
    async removeMember(call, { id }) {
      await db.transaction(async (tx) => {
        const { user_id: user, email } = await members.remove(tx, call.principal, id);
        call.audit(tx, { subject: id, data: { user, email } });
      });
      return create(EmptySchema);
    },
    leave: (call) =>
      call.commit(async (tx) => {
        const { id, user_id: user } = await members.leave(tx, loginOf(call));
        call.audit(tx, { subject: id, data: { user } });
        return create(EmptySchema);
      }),
  };
}
