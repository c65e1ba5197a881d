import { canonicalEmail, findUserByEmail, type UserRow } from "../accounts/users.ts";
import { userActor } from "../audit/audit-log.ts";
import type { ConsumeMagicLinkRequest, LogInRequest, Login } from "../gen/pilothouse/v1/auth_pb.ts";
import type { Call } from "../kernel/call.ts";
import { fail } from "../platform/errors.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { createAuthMails } from "./auth-mails.ts";
import { toLoginMessage } from "./auth-messages.ts";
import type { AuthServiceParts } from "./auth-parts.ts";
import { clientOf } from "./logins/client.ts";
import { useMailToken } from "./mail-tokens.ts";
import { createVerification } from "./verification.ts";

const notVerified = "open the link in the e-mail that was sent at sign-up; sign up again to receive another e-mail";

export function createLogIn(parts: AuthServiceParts) {
  const { db, clock, logins, provePassword, mailer, audit, invites } = parts;
  const verify = createVerification(parts);
  const mails = createAuthMails(mailer);

  async function open(tx: Tx, call: Call, user: UserRow, accountId: string | undefined): Promise<Login> {
    const client = clientOf(call);
    const login = await logins.open(tx, { user, accountId, client });
    const begun = { accountId: login.accountId, action: "login.create", subject: login.loginId };
    audit.record(tx, { ...begun, actor: userActor(user), call });
    if (login.isNewDevice) await mailer.send(tx, mails.newDevice(user, client));
    return toLoginMessage(login);
  }

  return {
    async logIn(call: Call, { email: given, password, accountId, inviteToken }: LogInRequest): Promise<Login> {
      const email = canonicalEmail(given);
      const user = await findUserByEmail(db, email, clock.now());
      await provePassword({ user, email, password, client: clientOf(call) });
      if (!user?.email_verified_at) throw fail("email-not-verified", {}, { detail: notVerified });
      return db.transaction(async (tx) => {
        const joined = inviteToken === undefined ? undefined : await invites.accept(tx, call, user.id, inviteToken);
        return open(tx, call, user, joined?.account_id ?? accountId);
      });
    },

    async consumeMagicLink(call: Call, { token, accountId }: ConsumeMagicLinkRequest): Promise<Login> {
      return db.transaction(async (tx) => {
        const { userId } = await useMailToken(tx, "magic-link", token, clock.now());
        return open(tx, call, await verify(tx, call, { userId, passwordHash: null }), accountId);
      });
    },
  };
}
