import { type UserRow, type Verification, verifyUser } from "../accounts/users.ts";
import { userActor } from "../audit/audit-log.ts";
import type { AuditLog, Call } from "../kernel/call.ts";
import { insertAcceptance } from "../legal/store.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import type { Invites } from "../teams/invites.ts";
import { dropVerifications, invalidMailToken } from "./mail-tokens.ts";

export interface VerificationRequest extends Pick<Verification, "passwordHash"> {
  readonly userId: string;
}

/**
 * Creates the function that verifies the address of a user who followed a link. The function throws
 * `invalid-auth-token` if the user no longer exists.
 */
export function createVerification({
  ids,
  clock,
  audit,
  invites,
}: Pick<PlatformParts, "ids" | "clock"> & {
  readonly audit: AuditLog;
  readonly invites: Invites;
}) {
  return async (tx: Tx, call: Call, { userId, passwordHash }: VerificationRequest): Promise<UserRow> => {
    const [membershipId, now] = [ids.next("mem"), new Date(clock.now())];
    const verified = await verifyUser(tx, userId, { membershipId, now, passwordHash });
    if (!verified) throw invalidMailToken();
    await dropVerifications(tx, userId);
    const { user, createdAccountId, acceptedRevision: revisionId, inviteHash } = verified;
    if (createdAccountId !== undefined) {
      const made = { accountId: createdAccountId, action: "account.create", subject: createdAccountId };
      audit.record(tx, { ...made, actor: userActor(user), call });
      if (revisionId !== null) {
        await insertAcceptance(tx, { accountId: createdAccountId, revisionId, at: user.created_at });
        const accepted = { accountId: createdAccountId, action: "legal.accept", subject: revisionId };
        audit.record(tx, { ...accepted, actor: userActor(user), call });
      }
    }
    // If the invite is no longer open, the user has no account, and can be invited again.
    if (inviteHash) await invites.acceptOpen(tx, call, userId, inviteHash);
    return user;
  };
}
