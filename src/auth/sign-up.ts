import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { canonicalEmail, findUserByEmail, insertUser, type UserRow } from "../accounts/users.ts";
import type { Call } from "../call.ts";
import {
  type SignUpRequest,
  type SignUpResponse,
  SignUpResponseSchema,
  type VerifyEmailRequest,
  type VerifyEmailResponse,
  VerifyEmailResponseSchema,
} from "../gen/pilothouse/v1/auth_pb.ts";
import { clientOf } from "../logins/client.ts";
import { assertUncommon } from "../passwords/common-passwords.ts";
import { fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { makeMailToken, useMailToken } from "./mail-tokens.ts";
import { createAuthMails } from "./mails.ts";
import type { AuthServiceParts } from "./service.ts";
import { createVerification } from "./verification.ts";

/** An hour: sign-ups from a network, which say of any address whether it has a user; and mails to an address. */
const most = { signUps: 100, mails: 5 };

/** Makes the methods by which people come to be users. */
export function createSignUp(parts: AuthServiceParts) {
  const { config, db, ids, clock, brakes, passwords, mailer, linkRequests, invites } = parts;
  const mails = createAuthMails(mailer);
  const verify = createVerification(parts);

  async function sendVerification(tx: Tx, user: Pick<UserRow, "id" | "email" | "name">): Promise<void> {
    const { id: userId, email } = user;
    const token = await makeMailToken(tx, "verify-email", { userId, email }, clock.now());
    await mailer.send(tx, mails.verification(user, token));
  }

  /** The mail of a sign-up that is pending may have been lost; nobody shall fill a mailbox by it. */
  async function sendAgain(email: string): Promise<void> {
    const counted = await brakes.count([{ name: `verify-email ${email}`, limit: most.mails }]);
    if (counted) await linkRequests.ask({ kind: "verify-email", email });
  }

  return {
    async signUp(call: Call, request: SignUpRequest): Promise<SignUpResponse> {
      const { inviteToken } = request;
      if (config.signup === "closed" && inviteToken === undefined)
        throw fail("feature-unavailable", {}, { detail: "sign-up takes an invite here" });
      const email = canonicalEmail(request.email);
      assertUncommon(request.password, email);
      const { network } = clientOf(call);
      await brakes.take([{ name: `sign-up ${network}`, limit: most.signUps }], "sign-ups came from your network");
      const invite = inviteToken === undefined ? undefined : await invites.find(db, email, inviteToken);
      const found = await findUserByEmail(db, email, clock.now());
      // Whether it is verified is told neither in words nor by time.
      if (found) await sendAgain(email);
      if (found) throw fail("email-already-registered");
      const passwordHash = await passwords.hash(request.password);
      const name = request.name ?? email.split("@", 1)[0] ?? email;
      const id = ids.next("usr");
      const account = { id: ids.next("acc"), name: request.accountName ?? name };
      const joined = invite ? { inviteHash: invite.token_hash } : { account };
      await db.transaction(async (tx) => {
        const user = { id, email, name, passwordHash, ...joined, createdAt: new Date(clock.now()) };
        if (!(await insertUser(tx, user))) throw fail("email-already-registered");
        await sendVerification(tx, user);
      });
      return create(SignUpResponseSchema, { userId: id, accountId: invite?.account_id ?? account.id, email });
    },

    async verifyEmail(call: Call, { token }: VerifyEmailRequest): Promise<VerifyEmailResponse> {
      return db.transaction(async (tx) => {
        const { userId } = await useMailToken(tx, "verify-email", token, clock.now());
        const { email, email_verified_at: at } = await verify(tx, call, { userId, dropsPassword: false });
        return create(VerifyEmailResponseSchema, { userId, email, ...(at && { verifiedAt: timestampFromDate(at) }) });
      });
    },
  };
}
