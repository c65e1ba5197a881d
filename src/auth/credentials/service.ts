import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { findUserOfLogin } from "../../accounts/users.ts";
import type { ChangePasswordRequest, CredentialsService } from "../../gen/pilothouse/v1/credentials_pb.ts";
import { type Call, loginOf } from "../../kernel/call.ts";
import type { ServiceImplementation } from "../../kernel/registry.ts";
import { clientOf } from "../logins/client.ts";
import { changePasswordHash } from "../new-password.ts";
import type { Passwords } from "../passwords/passwords.ts";
import { createEmailChange, type EmailChangeParts } from "./email-change.ts";

export interface CredentialsServiceParts extends EmailChangeParts {
  readonly passwords: Passwords;
}

export function createCredentialsService(
  parts: CredentialsServiceParts,
): ServiceImplementation<typeof CredentialsService> {
  const { db, passwords, provePassword } = parts;

  async function changePassword(call: Call, { currentPassword, password }: ChangePasswordRequest) {
    const login = loginOf(call);
    const user = await findUserOfLogin(db, login);
    await provePassword({ user, email: user.email, password: currentPassword, client: clientOf(call) });
    await passwords.assertStrong(password, user.email, call.clientAddress);
    const passwordHash = await passwords.hash(password, call.clientAddress);
    await db.transaction(async (tx) => {
      call.audit(tx, { subject: user.id });
      await changePasswordHash(parts, tx, user, { passwordHash, except: login.loginId });
    });
    return create(EmptySchema);
  }

  return { changePassword, ...createEmailChange(parts) };
}
