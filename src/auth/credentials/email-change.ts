import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { listMemberships } from "../../accounts/memberships.ts";
import {
  canonicalEmail,
  changeUserEmail,
  findUserByEmail,
  findUserOfLogin,
  type UserRow,
  updatePassword,
} from "../../accounts/users.ts";
import { userActor } from "../../audit/audit-log.ts";
import {
  type ConfirmEmailChangeRequest,
  type EmailChanged,
  EmailChangedSchema,
  EmailChangeRequestedSchema,
  type RequestEmailChangeRequest,
  type UndoEmailChangeRequest,
} from "../../gen/pilothouse/v1/credentials_pb.ts";
import type { Throttles } from "../../identity/throttle.ts";
import { type AuditLog, type Call, loginOf } from "../../kernel/call.ts";
import type { Mailer } from "../../mail/mailer.ts";
import { fail, failFields } from "../../platform/errors.ts";
import type { PlatformParts } from "../../platform/platform-parts.ts";
import type { Tx } from "../../platform/postgres/database.ts";
import { revokeInvitesTo } from "../../teams/invite-store.ts";
import { createAuthMails } from "../auth-mails.ts";
import { clientOf } from "../logins/client.ts";
import type { Logins } from "../logins/logins.ts";
import { dropAllMailTokens, dropMailTokens, makeMailToken, useMailToken, validFor } from "../mail-tokens.ts";
import type { ProvePassword } from "../passwords/password-proof.ts";

export interface EmailChangeParts extends Pick<PlatformParts, "db" | "bus" | "clock"> {
  readonly throttles: Throttles;
  readonly provePassword: ProvePassword;
  readonly logins: Logins;
  readonly mailer: Mailer;
  readonly audit: AuditLog;
}

/** Maximum requests per hour by a user, and for a new address, because each request sends an e-mail. */
const maxMails = 5;

/** Creates the methods that change a user's address. */
export function createEmailChange(parts: EmailChangeParts) {
  const { db, bus, clock, throttles, provePassword, logins, mailer, audit } = parts;
  const mails = createAuthMails(mailer);

  /** Changes the address of a user to `email`, after proof of access to that mailbox. Returns the previous row. */
  async function move(
    tx: Tx,
    call: Call,
    { userId, email, action }: { userId: string; email: string; action: string },
  ) {
    const before = await changeUserEmail(tx, userId, email);
    if (!before) throw fail("email-already-registered", {}, { detail: "the address now belongs to another user" });
    await revokeInvitesTo(tx, before.email, new Date(clock.now()));
    const data = { before: before.email, email };
    for (const { accountId } of await listMemberships(tx, userId))
      audit.record(tx, { accountId, actor: userActor(before), action, subject: userId, data, call });
    // Cached bearers contain the old address.
    tx.afterCommit(() => bus.publish("bearer-changed", userId));
    return before;
  }

  const toMessage = (userId: string, email: string): EmailChanged =>
    create(EmailChangedSchema, { userId, email, changedAt: timestampFromDate(new Date(clock.now())) });

  /** Sends an e-mail in every case, so that neither response nor timing discloses whether the address has a user. */
  async function mailTo(tx: Tx, user: UserRow, email: string, loginId: string): Promise<void> {
    const taken = await findUserByEmail(tx, email, clock.now());
    const token = await makeMailToken(tx, "email-change", { userId: user.id, email, loginId }, clock.now());
    const mail = taken?.email_verified_at ? mails.emailTaken(taken) : mails.emailChange({ ...user, email }, token);
    await mailer.send(tx, mail);
  }

  return {
    async requestEmailChange(call: Call, request: RequestEmailChangeRequest) {
      const { loginId, ...login } = loginOf(call);
      const email = canonicalEmail(request.email);
      const user = await findUserOfLogin(db, login);
      if (email === user.email) throw failFields("validation-failed", { email: "is already your address" });
      await provePassword({ user, email: user.email, password: request.password, client: clientOf(call) });
      for (const name of [`email-change by ${user.id}`, `email-change to ${email}`])
        await throttles.take([{ name, limit: maxMails }], "requests to change the address");
      await db.transaction(async (tx) => {
        call.audit(tx, { subject: user.id, data: { email } });
        await mailTo(tx, user, email, loginId);
      });
      return create(EmailChangeRequestedSchema, { email, validSeconds: validFor["email-change"] / 1_000 });
    },

    confirmEmailChange: (call: Call, { token }: ConfirmEmailChangeRequest): Promise<EmailChanged> =>
      db.transaction(async (tx) => {
        const now = clock.now();
        const { userId, email, loginId } = await useMailToken(tx, "email-change", token, now);
        const before = await move(tx, call, { userId, email, action: "user.change_email" });
        await dropMailTokens(tx, userId);
        await logins.end(tx, { userId, ...(loginId && { except: loginId }) });
        const undo = await makeMailToken(tx, "undo-email-change", { userId, email: before.email }, now);
        await mailer.send(tx, mails.emailChanged(before, email, undo));
        return toMessage(userId, email);
      }),

    undoEmailChange: (call: Call, { token }: UndoEmailChangeRequest): Promise<EmailChanged> =>
      db.transaction(async (tx) => {
        const { userId, email } = await useMailToken(tx, "undo-email-change", token, clock.now());
        const before = await move(tx, call, { userId, email, action: "user.undo_email_change" });
        await updatePassword(tx, userId, null);
        await dropAllMailTokens(tx, userId);
        await logins.end(tx, { userId });
        const reset = await makeMailToken(tx, "password-reset", { userId, email }, clock.now());
        await mailer.send(tx, mails.emailRestored({ ...before, email }, reset));
        return toMessage(userId, email);
      }),
  };
}
