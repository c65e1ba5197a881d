import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { findAccount } from "../accounts/store.ts";
import { findUserOfLogin } from "../accounts/users.ts";
import { userActor } from "../audit/audit-log.ts";
import { clientOf } from "../auth/logins/client.ts";
import { invalidMailToken, makeMailToken, useMailToken, validFor } from "../auth/mail-tokens.ts";
import type { ProvePassword } from "../auth/passwords/password-proof.ts";
import { enqueueCardSync } from "../billing/card-sync.ts";
import {
  type AccountDeletion,
  AccountDeletionSchema,
  type AccountRestored,
  AccountRestoredSchema,
  type DeleteAccountRequest,
  type DeletionService,
  type RestoreAccountRequest,
} from "../gen/pilothouse/v1/deletion_pb.ts";
import type { JobQueues } from "../jobs/job-queues.ts";
import { type AuditLog, type Call, loginOf } from "../kernel/call.ts";
import type { ServiceImplementation } from "../kernel/registry.ts";
import { scheduleCheck } from "../limits/store.ts";
import type { Mailer } from "../mail/mailer.ts";
import { fail } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { revokeInvitesOf } from "../teams/invite-store.ts";
import { findMember, listAllMembers } from "../teams/member-store.ts";
import { deletionMail, restorationMail } from "./deletion-mails.ts";
import { closeAccount, reopenAccount } from "./store.ts";

export interface DeletionServiceParts extends Pick<PlatformParts, "db" | "bus" | "clock"> {
  readonly mailer: Mailer;
  readonly provePassword: ProvePassword;
  readonly audit: AuditLog;
  readonly jobQueues: JobQueues;
}

export function createDeletionService(parts: DeletionServiceParts): ServiceImplementation<typeof DeletionService> {
  const { db, bus, clock, mailer, provePassword, audit, jobQueues } = parts;

  /** E-mails all members about a deletion. Owners get a link to restore the account. */
  async function notifyDeletion(tx: Tx, accountId: string, by: string, deletesAt: Date): Promise<void> {
    const { name: accountName } = await findAccount(tx, accountId);
    for (const member of await listAllMembers(tx, accountId)) {
      const owner = { userId: member.user_id, email: member.email, accountId };
      const isOwner = member.role === "owner";
      const token = isOwner ? await makeMailToken(tx, "account-restore", owner, clock.now()) : undefined;
      const url = token === undefined ? undefined : mailer.link("account-restore", token);
      await mailer.send(tx, deletionMail(member, { accountName, by }, deletesAt, url));
    }
  }

  /** Makes gateways reload the account's bearers, and schedules the check that ends a closed account's sessions. */
  function settle(tx: Tx, accountId: string): void {
    scheduleCheck(tx, accountId, clock.now());
    tx.afterCommit(() => bus.publish("bearer-changed", accountId));
  }

  async function deleteAccount(call: Call, { password }: DeleteAccountRequest): Promise<AccountDeletion> {
    const login = loginOf(call);
    const { accountId, userId } = login;
    if (login.role !== "owner")
      throw fail("forbidden", {}, { detail: "only an owner can delete an account: ask one of its owners" });
    const user = await findUserOfLogin(db, login);
    await provePassword({ user, email: user.email, password, client: clientOf(call) });
    const now = clock.now();
    const deletesAt = new Date(now + validFor["account-restore"]);
    await db.transaction(async (tx) => {
      const isClosed = await closeAccount(tx, accountId, { now: new Date(now), deletesAt });
      // A concurrent request may have closed the account or removed this owner.
      const member = await findMember(tx, accountId, { userId });
      if (!isClosed || member?.role !== "owner")
        throw fail("revoked-key", {}, { detail: "the account was closed, or you are no longer one of its owners" });
      await revokeInvitesOf(tx, accountId, new Date(now));
      settle(tx, accountId);
      await enqueueCardSync(tx, jobQueues, accountId);
      call.audit(tx, { subject: accountId, data: { deletes_at: deletesAt.toISOString() } });
      await notifyDeletion(tx, accountId, user.email, deletesAt);
    });
    return create(AccountDeletionSchema, { accountId, deletesAt: timestampFromDate(deletesAt) });
  }

  async function restoreAccount(call: Call, { token }: RestoreAccountRequest): Promise<AccountRestored> {
    const now = clock.now();
    return db.transaction(async (tx) => {
      const { userId, accountId } = await useMailToken(tx, "account-restore", token, now);
      const owner = accountId ? await findMember(tx, accountId, { userId }) : undefined;
      if (owner?.role !== "owner" || !(await reopenAccount(tx, owner.account_id, new Date(now))))
        throw invalidMailToken();
      settle(tx, owner.account_id);
      await enqueueCardSync(tx, jobQueues, owner.account_id);
      const record = { accountId: owner.account_id, action: "account.restore", subject: owner.account_id };
      audit.record(tx, { ...record, actor: userActor({ id: userId, email: owner.email }), call });
      const { name: accountName } = await findAccount(tx, owner.account_id);
      for (const member of await listAllMembers(tx, owner.account_id))
        await mailer.send(tx, restorationMail(member, { accountName, by: owner.email }));
      return create(AccountRestoredSchema, { accountId: owner.account_id });
    });
  }

  return { deleteAccount, restoreAccount };
}
