import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { findUserOfLogin, updatePassword } from "../accounts/users.ts";
import { dropMailTokens } from "../auth/mail-tokens.ts";
import { createAuthMails } from "../auth/mails.ts";
import { type Call, loginOf } from "../call.ts";
import type { ChangePasswordRequest, CredentialsService } from "../gen/pilothouse/v1/credentials_pb.ts";
import { clientOf } from "../logins/client.ts";
import { assertUncommon } from "../passwords/common-passwords.ts";
import type { Passwords } from "../passwords/passwords.ts";
import type { ServiceImplementation } from "../registry.ts";
import { createEmailChange, type EmailChangeParts } from "./email-change.ts";

export interface CredentialsServiceParts extends EmailChangeParts {
  readonly passwords: Passwords;
}

/** Makes the implementation of CredentialsService. */
export function createCredentialsService(
  parts: CredentialsServiceParts,
): ServiceImplementation<typeof CredentialsService> {
  const { db, logins, passwords, provePassword, mailer } = parts;
  const mails = createAuthMails(mailer);

  async function changePassword(call: Call, { currentPassword, password }: ChangePasswordRequest) {
    const login = loginOf(call);
    const user = await findUserOfLogin(db, login);
    assertUncommon(password, user.email);
    await provePassword({ user, email: user.email, password: currentPassword, client: clientOf(call) });
    const passwordHash = await passwords.hash(password);
    await db.transaction(async (tx) => {
      await updatePassword(tx, user.id, passwordHash);
      await dropMailTokens(tx, user.id);
      await logins.end(tx, { userId: user.id, except: login.loginId });
      call.audit(tx, { subject: user.id });
      await mailer.send(tx, mails.passwordChanged(user));
    });
    return create(EmptySchema);
  }

  return { changePassword, ...createEmailChange(parts) };
}
