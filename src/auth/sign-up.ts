import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { canonicalEmail, contestSignUp, findUserByEmail, insertUser, type UserRow } from "../accounts/users.ts";
import {
  type SignUpRequest,
  type SignUpResponse,
  SignUpResponseSchema,
  type VerifyEmailRequest,
  type VerifyEmailResponse,
  VerifyEmailResponseSchema,
} from "../gen/pilothouse/v1/auth_pb.ts";
import type { Call } from "../kernel/call.ts";
import { notAcceptable } from "../legal/terms.ts";
import { fail, failFields } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { createAuthMails } from "./auth-mails.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { clientOf } from "./logins/client.ts";
import { findMailToken, makeMailToken, useMailToken } from "./mail-tokens.ts";
import { createVerification } from "./verification.ts";

/**
 * Maximum per hour. `signUps`: per network, because the response discloses whether an address has a user. `mails`:
 * repeated verification e-mails per address.
 */
const max = { signUps: 100, mails: 5 };

const alreadyRegistered =
  "the address has a user: log in, reset the password, or open the link in the e-mail of an earlier sign-up";

/** Creates the methods that sign users up. */
export function createSignUp(parts: AuthServiceParts) {
  const { config, db, ids, clock, throttles, passwords, mailer, linkRequests, invites, legal } = parts;
  const mails = createAuthMails(mailer);
  const verify = createVerification(parts);

  async function sendVerification(tx: Tx, user: Pick<UserRow, "id" | "email" | "name">): Promise<void> {
    const { id: userId, email } = user;
    const token = await makeMailToken(tx, "verify-email", { userId, email }, clock.now());
    await mailer.send(tx, mails.verification(user, token));
  }

  /**
   * Throws `email-already-registered` for an address that has a user or a pending sign-up. Requests the verification
   * e-mail again, in case the first was lost. E-mails are limited, so that a mailbox cannot be flooded. Neither text
   * nor timing discloses whether the address is verified.
   */
  async function rejectRepeated(email: string): Promise<never> {
    await contestSignUp(db, email);
    const counted = await throttles.count([{ name: `verify-email ${email}`, limit: max.mails }]);
    if (counted) await linkRequests.request({ kind: "verify-email", email });
    throw fail("email-already-registered", {}, { detail: alreadyRegistered });
  }

  async function assertAcceptable(revisionId: string, inviteToken: string | undefined): Promise<void> {
    if (inviteToken !== undefined)
      throw failFields("validation-failed", {
        accepted_revision_id: "must be left out with invite_token: the account of the invite accepts the terms",
      });
    if (!(await legal.acceptable(revisionId))) throw notAcceptable();
  }

  async function hashNew({ clientAddress }: Call, token: string, password: string): Promise<string> {
    // The token is checked first, so that guessed tokens do not cost a password hash.
    const { email } = await findMailToken(db, "verify-email", token, clock.now());
    await passwords.assertStrong(password, email, clientAddress);
    return passwords.hash(password, clientAddress);
  }

  return {
    async signUp(call: Call, request: SignUpRequest): Promise<SignUpResponse> {
      const { inviteToken, acceptedRevisionId: acceptedRevision } = request;
      if (config.signup === "closed" && inviteToken === undefined)
        throw fail(
          "feature-unavailable",
          {},
          { detail: "sign-up requires an invite: ask an owner of an account for an invite" },
        );
      const email = canonicalEmail(request.email);
      const { network } = clientOf(call);
      await throttles.take([{ name: `sign-up ${network}`, limit: max.signUps }], "sign-ups from your network");
      if (acceptedRevision !== undefined) await assertAcceptable(acceptedRevision, inviteToken);
      await passwords.assertStrong(request.password, email, call.clientAddress);
      const invite = inviteToken === undefined ? undefined : await invites.find(db, email, inviteToken);
      if (await findUserByEmail(db, email, clock.now())) return rejectRepeated(email);
      const passwordHash = await passwords.hash(request.password, call.clientAddress);
      const name = request.name ?? email.split("@", 1)[0] ?? email;
      const id = ids.next("usr");
      const account = { id: ids.next("acc"), name: request.accountName ?? name };
      const joined = invite ? { inviteHash: invite.token_hash } : { account };
      const isNew = await db.transaction(async (tx) => {
        const user = { id, email, name, passwordHash, ...joined, acceptedRevision, createdAt: new Date(clock.now()) };
        const isInserted = await insertUser(tx, user);
        if (isInserted) await sendVerification(tx, user);
        return isInserted;
      });
      if (!isNew) return rejectRepeated(email);
      return create(SignUpResponseSchema, { userId: id, accountId: invite?.account_id ?? account.id, email });
    },

    async verifyEmail(call: Call, { token, password }: VerifyEmailRequest): Promise<VerifyEmailResponse> {
      const passwordHash = password === undefined ? undefined : await hashNew(call, token, password);
      return db.transaction(async (tx) => {
        const { userId } = await useMailToken(tx, "verify-email", token, clock.now());
        const { email, email_verified_at: at } = await verify(tx, call, { userId, passwordHash });
        return create(VerifyEmailResponseSchema, { userId, email, ...(at && { verifiedAt: timestampFromDate(at) }) });
      });
    },
  };
}
