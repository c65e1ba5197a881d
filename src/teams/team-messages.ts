import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { toRoleMessage } from "../accounts/role-message.ts";
import {
  type TeamInvite,
  TeamInviteSchema,
  TeamInviteStatus,
  type TeamMember,
  TeamMemberSchema,
} from "../gen/pilothouse/v1/team_pb.ts";
import { storedNames } from "../platform/rest-json/field-names.ts";
import { type InviteRow, inviteStatusOf } from "./invite-store.ts";
import type { MemberRow } from "./member-store.ts";

const { toMessage, toStored } = storedNames(TeamInviteStatus);

/** Converts a status filter; unspecified becomes undefined. */
export const toInviteStatus = toStored;

export function toInviteMessage(row: InviteRow, now: number): TeamInvite {
  return create(TeamInviteSchema, {
    id: row.id,
    email: row.email,
    role: toRoleMessage(row.role),
    status: toMessage(inviteStatusOf(row, now)),
    createdAt: timestampFromDate(row.created_at),
    expiresAt: timestampFromDate(row.expires_at),
    ...(row.invited_by !== null && { invitedBy: row.invited_by }),
    ...(row.invited_by_key !== null && { invitedByKey: row.invited_by_key }),
    ...(row.accepted_at && { acceptedAt: timestampFromDate(row.accepted_at) }),
  });
}

export function toMemberMessage(row: MemberRow): TeamMember {
  return create(TeamMemberSchema, {
    id: row.id,
    accountId: row.account_id,
    userId: row.user_id,
    email: row.email,
    name: row.name,
    role: toRoleMessage(row.role),
    mfaEnrolled: row.has_second_factor,
    createdAt: timestampFromDate(row.created_at),
  });
}
