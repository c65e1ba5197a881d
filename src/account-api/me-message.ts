import { create } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Membership } from "../accounts/memberships.ts";
import { toRoleMessage } from "../accounts/role-message.ts";
import type { NamedAccount } from "../accounts/store.ts";
import type { UserRow } from "../accounts/users.ts";
import {
  type AccountMembership,
  AccountMembershipSchema,
  AccountSchema,
  type Me,
  MeSchema,
  type QuotaUsage,
  type User,
  UserSchema,
} from "../gen/pilothouse/v1/account_pb.ts";
import { allScopes } from "../identity/api-keys/scopes.ts";
import { type OutstandingTerms, type Principal, steppedUpFor } from "../kernel/call.ts";
import { toTierMessage } from "../limits/tier-message.ts";

/** The caller and the data shown about the caller. */
export interface KnownCaller {
  readonly principal: Principal;
  readonly account: NamedAccount;
  readonly quotas: QuotaUsage[];
  readonly user: UserRow | undefined;
  readonly memberships: readonly Membership[];
  readonly outstanding: OutstandingTerms | undefined;
  readonly now: number;
}

function toUserMessage({ id, email, name, created_at, email_verified_at, totp_enrolled_at }: UserRow): User {
  return create(UserSchema, {
    id,
    email,
    name,
    createdAt: timestampFromDate(created_at),
    emailVerified: email_verified_at !== null,
    mfaEnrolled: totp_enrolled_at !== null,
  });
}

function toMembershipMessage({ accountId, accountName, role, createdAt }: Membership): AccountMembership {
  const joined = { role: toRoleMessage(role), createdAt: timestampFromDate(createdAt) };
  return create(AccountMembershipSchema, { accountId, accountName, ...joined });
}

/** Returns when the caller's step-up expires, in milliseconds since the epoch; undefined without a valid step-up. */
function stepUpEnd(principal: Principal, now: number): number | undefined {
  if (principal.kind !== "login" || principal.steppedUpAt === undefined) return undefined;
  const end = principal.steppedUpAt + steppedUpFor;
  return end > now ? end : undefined;
}

export function toMeMessage({ principal, account, user, now, ...known }: KnownCaller): Me {
  const { id, name, tier, created_at } = account;
  const stepUpEnds = stepUpEnd(principal, now);
  return create(MeSchema, {
    account: create(AccountSchema, {
      id,
      name,
      tier: toTierMessage(tier),
      createdAt: timestampFromDate(created_at),
      quotas: known.quotas,
    }),
    ...(user && { user: toUserMessage(user) }),
    ...(principal.role && { role: toRoleMessage(principal.role) }),
    scopes: allScopes.filter((scope) => principal.scopes.has(scope)),
    ...(principal.kind === "key" && { apiKeyId: principal.keyId }),
    ...(stepUpEnds !== undefined && { stepUpExpiresAt: timestampFromMs(stepUpEnds) }),
    ...(known.outstanding && { pendingRevisionId: known.outstanding.revisionId }),
    memberships: known.memberships.map(toMembershipMessage),
  });
}
